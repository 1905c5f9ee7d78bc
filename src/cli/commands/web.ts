/** `lcm web`: serves the explorer to a browser on this machine. */

import { flag, object, text, whole } from "./_json.ts";
import { providerOptions, wholeNumber } from "./_options.ts";
import { adoptIfOlder, defineCommand } from "./_session.ts";

const schema = object({ url: text, port: whole, write: flag });

export const webCommand = defineCommand({
  name: "web",
  json: schema,
  summary: "browse everything in a browser",
  description:
    "Serve the explorer on 127.0.0.1 until Ctrl-C, and open it: conversations on a timeline, every summary beside its " +
    "sources, what the model saw, search, health. It follows the database live, and changes nothing without --write.",
  options: {
    port: ["--port <number>", "listen on this port (default: a free one)", wholeNumber(1, 65_535)],
    write: ["--write", "allow changes: each shows a plan first, makes a backup, and can be undone"],
    open: ["--no-open", "only print the link"],
    model: ["--model <name>", "rewrite summaries with this model, named as provider/model"],
    ...providerOptions,
    promptDir: ["--prompt-dir <folder>", "use the prompt files in this folder"],
  },
  examples: [
    ["lcm web", "open the explorer; Ctrl-C ends it"],
    ["lcm web --write", "rewrite, dissolve and undo in it, too"],
    ["lcm web --port 8137 --no-open", "to be reached over ssh: `ssh -L 8137:127.0.0.1:8137 host`"],
  ],
  notes:
    "The link contains a secret: whoever has it can read everything. With --json, prints the link as JSON and serves.",
  async run(session, options) {
    const { context, database, typed, json, print, printJson, note } = session;
    const { port = null, write = false, open = true, promptDir, ...model } = options;
    if (write) await adoptIfOlder(session);
    await context.serveWeb({
      database,
      typed,
      readOnly: !write,
      sessions: null,
      promptDir,
      model,
      listenOn: port,
      opens: open && !json,
      started({ link, port: taken }) {
        if (json) return printJson(schema, { url: link, port: taken, write });
        print(link);
        note(write ? "changes are allowed; Ctrl-C ends it" : "nothing can be changed; Ctrl-C ends it");
      },
      note,
    });
  },
});
