import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agentNames, agents, type AgentName, type Machine } from "./agents.ts";
import { planSetup, type AgentPlan, type Direction, type Found } from "./plan.ts";

const folder = "/opt/lossless-claw";
const machine: Machine = { home: "/home/ann", path: [], variables: {}, folder, version: "1.2.3" };
const url = `file://${folder}/dist/hosts/opencode/plugin.js`;
const installed = { has: (path: string) => path !== "src" };
const checkout = { has: () => true };

/** What each agent's configuration is when it loads us from a folder. */
const connectedTo: Readonly<Record<AgentName, (from: string) => string>> = {
  openclaw: (from) =>
    JSON.stringify({ plugins: { load: { paths: [from] }, slots: { contextEngine: "lossless-claw" } } }),
  pi: (from) => JSON.stringify({ packages: ["npm:other", from] }),
  "claude-code": (from) =>
    JSON.stringify({
      enabledPlugins: { "lossless-claw@lossless": true },
      extraKnownMarketplaces: { lossless: { source: { source: "directory", path: from } } },
    }),
  codex: (from) =>
    `[marketplaces.lossless]\nsource_type = "local"\nsource = "${from}"\n\n[plugins."lossless-claw@lossless"]\nenabled = true\n`,
  opencode: (from) => JSON.stringify({ plugin: ["other", `file://${from}/dist/hosts/opencode/plugin.js`] }),
};

function found(agent: AgentName, text: string | null, given: Partial<Found> = {}): Found {
  const [path = ""] = agents[agent].configs(machine);
  return {
    agent,
    program: `/bin/${agents[agent].program}`,
    config: { path, text, kept: null },
    hasCopy: true,
    ...given,
  };
}

function planned(it: Found, direction: Direction = "add", { at = machine, own = installed } = {}): AgentPlan {
  const [plan] = planSetup(at, own, [it], direction);
  return plan ?? assert.fail("there is a plan");
}

const stepsOf = (plan: AgentPlan): readonly string[] =>
  plan.kind !== "change"
    ? [plan.kind]
    : plan.steps.map((step) => (step.kind === "command" ? step.args.join(" ") : String(step.after)));

describe("what lcm setup would change", () => {
  it("is nothing for an agent that is not there, or is connected already", () => {
    for (const agent of agentNames) {
      assert.equal(planned(found(agent, null, { program: null })).kind, "absent", agent);
      assert.equal(planned(found(agent, connectedTo[agent](folder))).kind, "unchanged", agent);
      assert.equal(planned(found(agent, "{}"), "remove").kind, "unchanged", agent);
    }
  });

  it("is done by the agent's own commands where it has some", () => {
    const added = agentNames.map((agent) => [agent, stepsOf(planned(found(agent, agent === "codex" ? "" : "{}")))]);
    assert.deepEqual(Object.fromEntries(added), {
      openclaw: [`plugins install -l ${folder} --force --accept-capabilities`],
      pi: [`install ${folder}`],
      "claude-code": [`plugin marketplace add ${folder}`, "plugin install lossless-claw@lossless"],
      codex: [`plugin marketplace add ${folder}`, "plugin add lossless-claw@lossless"],
      opencode: [`{\n  "plugin": ["${url}"]\n}`],
    });
    const removed = agentNames.map((agent) => [
      agent,
      stepsOf(planned(found(agent, connectedTo[agent](folder)), "remove")),
    ]);
    assert.deepEqual(Object.fromEntries(removed), {
      openclaw: ["plugins uninstall lossless-claw --force"],
      pi: [`remove ${folder}`],
      "claude-code": ["plugin uninstall lossless-claw@lossless", "plugin marketplace remove lossless"],
      codex: ["plugin remove lossless-claw@lossless", "plugin marketplace remove lossless"],
      opencode: ['{"plugin":["other"]}'],
    });
  });

  it("replaces what was connected from another folder or an earlier version", () => {
    const elsewhere = "/old/lossless-claw";
    const replaced = agentNames.map((agent) => [agent, stepsOf(planned(found(agent, connectedTo[agent](elsewhere))))]);
    assert.deepEqual(Object.fromEntries(replaced), {
      openclaw: [`plugins install -l ${folder} --force --accept-capabilities`],
      pi: [`remove ${elsewhere}`, `install ${folder}`],
      "claude-code": [`plugin marketplace add ${folder}`, "plugin install lossless-claw@lossless"],
      codex: [
        "plugin remove lossless-claw@lossless",
        "plugin marketplace remove lossless",
        `plugin marketplace add ${folder}`,
        "plugin add lossless-claw@lossless",
      ],
      opencode: [`{"plugin":["other", "${url}"]}`],
    });
    const outdated = found("codex", connectedTo.codex(folder), { hasCopy: false });
    assert.equal(stepsOf(planned(outdated)).length, 4);
    const checkedOut = { ...machine, folder: "/src/fork" };
    const linked = found("pi", '{ "packages": ["../../../../src/fork"] }');
    assert.equal(planned(linked, "add", { at: checkedOut, own: installed }).kind, "unchanged");
    const published = found("pi", '{ "packages": ["npm:lossless-claw@1.0.0"] }');
    assert.deepEqual(stepsOf(planned(published)), ["remove npm:lossless-claw@1.0.0", `install ${folder}`]);
  });

  it("gives a file back as it was, if nobody has changed it since and it did not name us then either", () => {
    const now = connectedTo.opencode(folder);
    const withKept = (text: string | null): Found => {
      const it = found("opencode", now);
      return { ...it, config: { ...it.config, kept: { text } } };
    };
    assert.deepEqual(stepsOf(planned(withKept("{ /* mine */ }"), "remove")), ["{ /* mine */ }"]);
    assert.deepEqual(stepsOf(planned(withKept(null), "remove")), ["null"]);
    assert.deepEqual(stepsOf(planned(withKept(now), "remove")), ['{"plugin":["other"]}']);
  });

  it("is nothing for Codex, whatever follows in its file and however the folder is quoted", () => {
    const trusted = '\n[projects."/home/ann/shop"]\ntrust_level = "trusted"\n';
    const config = connectedTo.codex(folder);
    for (const text of [config + trusted, trusted + config, config.replace(`"${folder}"`, `'${folder}'`) + trusted])
      assert.equal(planned(found("codex", text)).kind, "unchanged", text);
    const quoted = '/opt/my "new" \\folder';
    const written = connectedTo.codex(JSON.stringify(quoted).slice(1, -1)) + trusted;
    const at = { ...machine, folder: quoted };
    assert.equal(planned(found("codex", written), "add", { at, own: installed }).kind, "unchanged");
    assert.equal(stepsOf(planned(found("codex", connectedTo.codex("\\UFFFFFFFF")))).length, 4);
  });

  it("makes a file for OpenCode if there is none", () => {
    const steps = stepsOf(planned(found("opencode", null)));
    assert.deepEqual(steps, [`{\n  "$schema": "https://opencode.ai/config.json",\n  "plugin": ["${url}"]\n}\n`]);
  });

  it("leaves similar names alone", () => {
    const pi = '{ "packages": ["npm:my-lossless-claw", "../lossless-claw-fork", { "source": "npm:lossless-claw" }] }';
    assert.deepEqual(stepsOf(planned(found("pi", pi))), [`install ${folder}`]);
    assert.equal(
      planned(found("opencode", '{ "plugin": ["lossless-clawed", "file:///x/plugin.js"] }'), "remove").kind,
      "unchanged",
    );
    assert.equal(
      planned(found("openclaw", '{ contextEngine: "legacy" } // lossless-claw'), "remove").kind,
      "unchanged",
    );
  });
});

describe("a server of the same name in Codex", () => {
  const warningOf = (plan: AgentPlan): string => ("warning" in plan && plan.warning) || "";
  const mine = (table: string): string => `# mine\n[${table}]\ncommand = "my-lcm"\n`;

  it("hides ours, which is said before and afterwards", () => {
    for (const table of ["mcp_servers.lcm", 'mcp_servers."lcm"', "mcp_servers.lcm.env"]) {
      assert.match(warningOf(planned(found("codex", mine(table)))), /server `lcm` .* hides ours/, table);
      const connected = planned(found("codex", mine(table) + connectedTo.codex(folder)));
      assert.equal(connected.kind, "unchanged");
      assert.match(warningOf(connected), /hides ours/, table);
      assert.equal(warningOf(planned(found("codex", mine(table) + connectedTo.codex(folder)), "remove")), "");
    }
    for (const table of ["mcp_servers.lossless-claw", "mcp_servers.lcm2", "servers.lcm"])
      assert.equal(warningOf(planned(found("codex", mine(table)))), "", table);
  });
});

describe("what prevents it", () => {
  const blocked = (plan: AgentPlan): string => (plan.kind === "blocked" ? `${plan.problem} | ${plan.hint}` : plan.kind);

  it("is a configuration that makes no sense", () => {
    for (const agent of ["pi", "claude-code", "opencode"] as const)
      for (const direction of ["add", "remove"] as const)
        assert.match(
          blocked(planned(found(agent, "{\n  oops\n}"), direction)),
          /: line 2 is not JSON \| correct the file/,
        );
    assert.match(blocked(planned(found("opencode", '{ "plugin": {} }'))), /"plugin" is not a list/);
  });

  it("is a program that cannot be found, where it is needed", () => {
    for (const agent of agentNames) {
      const plan = planned(found(agent, agent === "codex" ? "" : "{}", { program: null }));
      if (agent === "opencode") assert.equal(plan.kind, "change");
      else assert.match(blocked(plan), /^it has a configuration, but its program `\w+` is not on PATH/);
    }
  });

  it("is a package that is not built, that npm may delete, or that is too large to copy", () => {
    const nothing = { has: () => false };
    assert.match(
      blocked(planned(found("pi", "{}"), "add", { at: machine, own: nothing })),
      /is not there \| install the package/,
    );
    const unbuilt = { has: (path: string) => path === "src" };
    assert.match(blocked(planned(found("pi", "{}"), "add", { at: machine, own: unbuilt })), /npm run build/);
    const npx = { ...machine, folder: "/home/ann/.npm/_npx/0a1/node_modules/lossless-claw" };
    for (const agent of agentNames)
      assert.match(
        blocked(planned(found(agent, agent === "codex" ? "" : "{}"), "add", { at: npx, own: installed })),
        /cache of npx/,
      );
    const kinds = agentNames.map(
      (agent) => planned(found(agent, agent === "codex" ? "" : "{}"), "add", { at: machine, own: checkout }).kind,
    );
    assert.deepEqual(kinds, ["change", "change", "blocked", "blocked", "change"]);
  });

  it("is nothing when an agent is disconnected", () => {
    for (const agent of agentNames) {
      const plan = planned(found(agent, connectedTo[agent](folder)), "remove", {
        at: machine,
        own: { has: () => false },
      });
      assert.equal(plan.kind, "change", agent);
    }
  });
});
