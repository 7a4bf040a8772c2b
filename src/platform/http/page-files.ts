import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";

/** One file of the browser's page. */
export interface GuiFile {
  bytes: Uint8Array<ArrayBuffer>;
  /** The same compressed, where that is shorter. */
  readonly gzip: Uint8Array<ArrayBuffer> | undefined;
  contentType: string;
  /** Strong entity tag. */
  etag: string;
  /** Its name contains a hash of its content: it may be cached for ever. */
  immutable: boolean;
}

/** The page by the paths of its files, `/assets/index-….js`; `/index.html` is what every page of it is answered with. */
export type GuiFiles = ReadonlyMap<string, GuiFile>;

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/**
 * Reads the page that the build has made, 1.3 MB, into memory: a file is found by its exact name, so that no address reaches
 * out of the folder. `apiPrefix` is what the page puts before paths of the API, `publicPath` what stands before all paths (`/flow`, or nothing). Undefined where there is no page, as in an
 * installation that was built without it.
 */
export function readGuiFiles(folder: string, apiPrefix: string, publicPath = ""): GuiFiles | undefined {
  if (!existsSync(join(folder, "index.html"))) return undefined;
  const files = new Map<string, GuiFile>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const contentType = TYPES[extname(entry.name)];
    if (!entry.isFile() || contentType === undefined) continue;
    const path = join(entry.parentPath, entry.name);
    const name = `/${relative(folder, path).split(sep).join("/")}`;
    files.set(name, fileOf(name, contentType, contentOf(path, name, apiPrefix, publicPath)));
  }
  return files;
}

function contentOf(path: string, name: string, apiPrefix: string, publicPath: string): Uint8Array<ArrayBuffer> {
  if (name !== "/index.html") return new Uint8Array(readFileSync(path));
  const before = publicPath.replaceAll("&", "&amp;");
  const text = readFileSync(path, "utf8")
    .replace('name="flow-api" content="/api"', () => `name="flow-api" content="${before}${apiPrefix}"`)
    .replace('name="flow-path" content=""', () => `name="flow-path" content="${before}"`)
    // The page is one file for many addresses: it loads its files by absolute paths.
    .replaceAll('="./assets/', () => `="${before}/assets/`);
  return new TextEncoder().encode(text);
}

function fileOf(name: string, contentType: string, bytes: Uint8Array<ArrayBuffer>): GuiFile {
  let compressed: Uint8Array<ArrayBuffer> | undefined;
  return {
    bytes,
    // When a browser first asks for it: all files together take 70 ms, which every start of a server would wait for.
    get gzip() {
      compressed ??= new Uint8Array(gzipSync(bytes, { level: 9 }));
      return compressed.length < bytes.length ? compressed : undefined;
    },
    contentType,
    etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`,
    // As the bundler names them; the icon has a plain name.
    immutable: /-[\w-]{8}\.\w+$/.test(name),
  };
}
