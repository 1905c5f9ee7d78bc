/** `lcm completion`: prints a script that lets a shell complete commands, options, choices and conversations. */

import { firstLine } from "../../core/base/excerpt.ts";
import { oneLine } from "../../format/safe-text.ts";
import { complete, type Candidate } from "../complete.ts";
import { flag, list, object, text } from "./_json.ts";
import { defineCommand, type Session } from "./_session.ts";

/** Each asks us what fits. A line is a word, a tab and what it is; `:files` lets the shell complete a path. */
const scripts = {
  bash: `_lcm() {
  local current="\${COMP_WORDS[COMP_CWORD]}" line
  [ "$current" = "=" ] && current=""
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = ":files" ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
    else
      COMPREPLY+=("\${line%%$'\\t'*}")
    fi
  done < <(lcm complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _lcm lcm
`,
  zsh: `#compdef lcm
_lcm() {
  local line
  local -a found
  for line in "\${(@f)$(lcm complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == ":files" ]]; then
      _files
      return
    fi
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe -V lcm found
}
if [[ $funcstack[1] == "_lcm" ]]; then _lcm "$@"; else compdef _lcm lcm; fi
`,
  fish: `function __lcm_complete
  set -l typed (commandline -opc)
  set -l found (lcm complete -- $typed[2..] (commandline -ct) 2>/dev/null)
  if test "$found[1]" = ":files"
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $found
  end
end
complete -c lcm -f -a '(__lcm_complete)'
`,
} as const;

const shells = Object.keys(scripts) as readonly (keyof typeof scripts)[];

const scriptJson = object({ shell: text, script: text });
const wordsJson = object({ files: flag, words: list(object({ word: text, what: text })) });

export const completionCommand = defineCommand({
  name: "completion",
  json: scriptJson,
  summary: "print a script that completes commands in bash, zsh or fish",
  description:
    "Print a script for bash, zsh or fish. With it, the Tab key completes commands, options, their choices, files and the " +
    "numbers of conversations.",
  arguments: [["<shell>", "the shell that will run the script", shells]],
  examples: [
    [`echo 'eval "$(lcm completion bash)"' >> ~/.bashrc`, "for every new bash"],
    [`echo 'eval "$(lcm completion zsh)"' >> ~/.zshrc`, "for every new zsh, after compinit"],
    ["lcm completion fish > ~/.config/fish/completions/lcm.fish", "for every new fish"],
  ],
  async run(session, _, name) {
    const [shell = "bash"] = shells.filter((each) => each === name);
    if (session.json) session.printJson(scriptJson, { shell, script: scripts[shell] });
    else session.print(scripts[shell].trimEnd());
  },
});

/** Called by the scripts with all words up to the cursor. */
export const completeCommand = defineCommand({
  name: "complete",
  json: wordsJson,
  summary: "list what fits at the end of a command line",
  description: "List what fits at the end of a command line, for the scripts of `lcm completion`.",
  arguments: [["[word...]", "the words typed so far; the last one may be empty"]],
  hidden: true,
  examples: [["lcm complete -- grep --sc", "lists --scope"]],
  async run(session, _, ...typed) {
    const candidates = await completions(session, typed);
    if (session.json) session.printJson(wordsJson, { files: candidates === null, words: candidates ?? [] });
    else if (candidates === null) session.print(":files");
    else for (const { word, what } of candidates) session.print(`${word}\t${oneLine(what)}`);
  },
});

/** Null if a path fits. */
async function completions(session: Session, typed: readonly string[]): Promise<readonly Candidate[] | null> {
  const found = complete(session.program, typed);
  switch (found.kind) {
    case "files":
      return null;
    case "words":
      return found.words;
    case "conversations":
      return found.fit(await conversations(session, found.db));
  }
}

const conversationsMax = 100;
const titleMax = 60;

/** The newest ones. A database that cannot be read completes nothing. */
async function conversations({ context }: Session, path: string | undefined): Promise<readonly Candidate[]> {
  try {
    const database = await context.database(path);
    if (database.kind() !== "ours") return [];
    const lcm = await database.open("read");
    try {
      const found = await lcm.store.conversations({ limit: conversationsMax });
      return found.map(({ id, title, sessionId }) => ({
        word: String(id),
        what: firstLine(title ?? sessionId, titleMax),
      }));
    } finally {
      await lcm.close();
    }
  } catch {
    return []; // The command itself reports why.
  }
}
