import * as v from "valibot";
import { isJsonObject } from "../../schema/words/json.ts";
import { answering, configurationError } from "../contract/task-config.ts";
import type { Tool } from "../contract/tool.ts";
import { loadScript, Script, type ScriptPlaces } from "../scripts/script-source.ts";

/**
 * The tool, with `script: {uri, source}` of its tasks loaded before they run: it is handed on as SQL text, as it was written.
 * Templates in it are not rendered; values come in by `params`.
 */
export function withSqlScripts<T extends Tool>(kind: string, tool: T, places: ScriptPlaces): T {
  return {
    ...tool,
    run: (call) => {
      const written = call.config["script"];
      if (!isJsonObject(written)) return tool.run(call);
      return answering(async () => {
        const script = v.safeParse(Script, written);
        if (!script.success) {
          const [issue] = script.issues;
          throw configurationError(`The ${kind} task is not configured correctly: key "script": ${issue.message}.`);
        }
        const loaded = await loadScript(kind, script.output, call, places);
        if (!("code" in loaded)) return loaded;
        return await tool.run({ ...call, config: { ...call.config, script: loaded.code } });
      });
    },
    async close() {
      await Promise.all([tool.close?.(), places.fetcher?.close()]);
    },
  };
}
