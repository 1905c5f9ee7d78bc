import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Finding } from "../core/maintenance/inspect.ts";
import { groupFindings } from "./findings.ts";

const finding = (code: Finding["code"], subject: string): Finding => ({
  severity: "error",
  code,
  conversation: null,
  subject,
  message: `${subject} is ${code}`,
  remedy: null,
});

describe("findings of one kind", () => {
  it("are described by level only if the level is what was found", () => {
    const [first, second] = ["sum_0000000000000001", "sum_0000000000000002"];
    const findings = [
      finding("summary_below_normal", first),
      finding("dangling_reference", first),
      finding("dangling_reference", second),
    ];
    assert.deepEqual(
      groupFindings(findings, new Map([[first, "extractive"]])).map(({ code, findings: of, sentence }) => [
        code,
        of.length,
        sentence,
      ]),
      [
        ["summary_below_normal", 1, "1 summary was extracted without a model"],
        ["dangling_reference", 2, null],
      ],
    );
  });
});
