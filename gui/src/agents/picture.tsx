import { type ReactNode, useEffect, useRef, useState } from "react";

/** Largest picture that is drawn, in characters of base64: 8 MiB. */
const DRAWN_MAX = 11_000_000;

/** A picture that a tool answered, drawn: as an address of its own the page's policy would refuse it. */
export function Picture({ data, type }: { data: string; type: string }): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    let isLeft = false;
    const draw = async () => {
      if (data.length > DRAWN_MAX) throw new Error("it is too large");
      const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes], { type }));
      if (isLeft || canvas.current === null) return;
      canvas.current.width = bitmap.width;
      canvas.current.height = bitmap.height;
      canvas.current.getContext("2d")?.drawImage(bitmap, 0, 0);
    };
    draw().catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
    return () => {
      isLeft = true;
    };
  }, [data, type]);
  if (problem !== undefined) return <p className="quiet wrap">The picture cannot be shown: {problem}.</p>;
  return <canvas ref={canvas} className="piece" role="img" aria-label={`Picture of the answer, ${type}`} />;
}
