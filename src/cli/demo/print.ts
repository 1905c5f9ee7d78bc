/** What the tools of the demo print: logs, tables, test runs, a file of orders. Numbers by chance, shapes from life. */

import type { Chance } from "./chance.ts";
import { createChance } from "./chance.ts";

type Printer = (chance: Chance, count: number, given: string) => readonly string[];

/** `order` is `printer count given`, as behind `|*` in the notation. */
export function printLines(chance: Chance, order: string): readonly string[] {
  const [name = "", count = "1", given = ""] = order.split(" ");
  const printer = printers[name];
  if (printer === undefined) throw new SyntaxError(`no such printer: ${order}`);
  return printer(chance, Number(count), given);
}

const printers: Readonly<Record<string, Printer>> = {
  /** `given` is the minute it starts in: 2026-09-05T21:31. */
  worker(chance, count, given) {
    let at = Date.parse(`${given}:00Z`);
    const days = (at - Date.UTC(2026, 8, 5)) / 86_400_000;
    const [job, order] = [87_640 + Math.round(days * 112), 20_360 + Math.round(days * 28) + (days > 23 ? 130 : 0)];
    const slowest = chance.between(400, 2_400);
    return Array.from({ length: count }, (_, index) => {
      at += chance.between(8_000, 170_000);
      const head = `${new Date(at).toISOString().replace("T", " ").slice(0, 23)} INFO  worker[${chance.between(0, 2)}]`;
      const subject = `job ${job + index} ${["capture", "invoice", "label", "mail"][index % 4]}`;
      const number = order + Math.floor(index / 4);
      const euros = `${9 + (number % 71)}.${["40", "90", "50", "20", "85"][number % 5]}`;
      return `${head} ${subject} order=FL-${number} amount=${euros} status=ok ${chance.between(120, slowest)} ms`;
    });
  },

  /** What the web server wrote; `given` as above. */
  requests(chance, count, given) {
    let at = Date.parse(`${given}:00Z`);
    return Array.from({ length: count }, () => {
      at += chance.between(200, 21_000);
      const [path = "", status = "200"] = chance.pick(paths).split(" ");
      const from = `203.0.113.${chance.between(2, 250)}`;
      const size = status === "200" ? chance.between(4_000, 61_000) : chance.between(140, 900);
      const agent = chance.pick(agents);
      const ms = chance.between(12, 480);
      return `${new Date(at).toISOString()} ${from} "GET ${path}" ${status} ${size} ms=${ms} "${agent}"`;
    });
  },

  tests(chance, count) {
    const cases = Array.from({ length: count }, () => {
      return `✔ ${chance.draw(promises)} (${chance.between(1, 38)}.${chance.between(0, 9)} ms)`;
    });
    return [`> shop@4.12.${chance.between(0, 40)} test`, "> node --test", ...cases, `${count} passing`];
  },

  copy(chance, count) {
    const tables = ["customers", "orders", "order_lines", "captures", "jobs", "vouchers"];
    const each = Math.floor((count - tables.length) / tables.length) + 1;
    return tables.flatMap((table) =>
      Array.from({ length: each }, (_, step) => {
        const share = step === each - 1 ? 100 : Math.round((100 * (step + 1)) / each) - chance.between(0, 9);
        return `${table.padEnd(12)} ${String(share).padStart(3)} %   ${chance.between(900, 9_800)} rows/s`;
      }),
    );
  },

  /** Orders by hour of one weekday. */
  hours(chance, count, given) {
    const rows = Array.from({ length: count }, (_, hour) => {
      const usual = "632211124578899986789976"[hour] ?? "5";
      return [`${given} ${String(hour).padStart(2, "0")}`, Number(usual) * 4 + chance.between(0, 3)];
    });
    return table(["h", "count"], rows);
  },

  /** How long jobs waited at most, day by day. */
  waits(chance, count, given) {
    const rows = Array.from({ length: count }, (_, day) => [
      new Date(Date.parse(given) + day * 86_400_000).toISOString().slice(0, 10),
      `00:0${chance.between(0, 3)}:${chance.between(10, 59)}`,
      chance.between(81, 340),
    ]);
    return table(["d", "wait", "count"], rows);
  },

  sizes: () =>
    "22G /srv/shop|9.1G /srv/shop/images|7.8G /srv/shop/data|6.2G /var/log|4.0G /var/log/journal|3.7G /var/backups"
      .concat("|2.9G /srv/shop/releases|1.6G /var/lib|1.1G /var/cache|412M /srv/shop/exports|96M /var/mail")
      .split("|"),

  csv: (_, count) => [
    "order,at,sku,product,pieces,unit_cents,discount_cents,country,paid_with",
    ...orderLines(count).map((line) => Object.values(line).join(",")),
  ],
};

// ── Tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────

type Cell = string | number;

/** As psql prints them. */
export function table(columns: readonly string[], rows: readonly (readonly Cell[])[]): readonly string[] {
  const widths = columns.map((column, at) => Math.max(column.length, ...rows.map((row) => String(row[at]).length)));
  const line = (cells: readonly Cell[]): string =>
    cells
      .map((cell, at) => {
        const width = widths[at] ?? 0;
        return ` ${typeof cell === "number" ? String(cell).padStart(width) : cell.padEnd(width)} `;
      })
      .join("|")
      .trimEnd();
  const rule = widths.map((width) => "-".repeat(width + 2)).join("+");
  return [line(columns), rule, ...rows.map(line), `(${rows.length} rows)`];
}

// ── The shop ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Product {
  readonly sku: string;
  readonly name: string;
  readonly cents: number;
  readonly shelf: string;
}

export const products: readonly Product[] = `
LON-050 A1 1490 Longjing 50 g|GYO-050 A2 1890 Gyokuro 50 g|SEN-100 A3 1290 Sencha Asamushi 100 g
HOJ-100 A4 990 Hojicha 100 g|GEN-100 A5 890 Genmaicha 100 g|JIN-100 B1 1350 Jin Xuan Oolong 100 g
TIE-100 B2 1480 Tieguanyin 100 g|DAR-100 B3 1390 Darjeeling First Flush 100 g|ASS-250 B4 1190 Assam Broken 250 g
EAR-250 B5 1240 Earl Grey 250 g|ROO-250 C1 950 Rooibos Vanilla 250 g|PEP-100 C2 590 Peppermint 100 g
JAS-050 C3 1290 Jasmine Pearls 50 g|LAP-100 C4 1050 Lapsang Souchong 100 g|WHI-050 C5 1180 White Peony 50 g
KYU-280 D1 4900 Kyusu 280 ml|GAI-120 D2 2400 Gaiwan white 120 ml|TIN-150 D3 990 Tea tin 150 g
GLA-800 D4 2950 Glass teapot 0.8 l|CUP-002 D5 1950 Cups set of two`
  .trim()
  .split(/[|\n]/)
  .map((row) => {
    const [sku = "", shelf = "", cents = "", ...name] = row.split(" ");
    return { sku, shelf, cents: Number(cents), name: name.join(" ") };
  });

/** The lines of the pasted file: the same whenever and by whomever they are asked for. */
export function orderLines(count: number) {
  const chance = createChance("august");
  const teas = products.slice(0, 15);
  // Popular teas stand several times in the hat; the smoky one only once.
  const hat = teas.flatMap((tea, at) =>
    Array.from({ length: tea.sku === "LAP-100" ? 1 : 2 + ((at * 5) % 7) }, () => tea),
  );
  let order = 19_402;
  return Array.from({ length: count }, (_, index) => {
    const tea = chance.pick(hat);
    order += chance.between(0, 2);
    const at = new Date(Date.UTC(2026, 7, 1, 5) + Math.floor((index * 30.7 * 86_400_000) / count)).toISOString();
    return {
      order: `FL-${order}`,
      at: `${at.slice(0, 16)}Z`,
      sku: tea.sku,
      product: tea.name,
      pieces: chance.pick([1, 1, 1, 2, 2, 3]),
      unit: tea.cents,
      discount: chance.pick([0, 0, 0, 0, Math.round(tea.cents / 10)]),
      country: chance.pick(["DE", "DE", "DE", "DE", "DE", "DE", "AT", "NL", "DK"]),
      paidWith: chance.pick(["card", "card", "transfer", "invoice"]),
    };
  });
}

const paths = "/|/tea/green|/tea/oolong|/tea/gyokuro|/teaware/kyusu|/cart|/checkout|/search?q=oolong|/journal/cold-brew"
  .concat("|/tea/hojicha|/images/kyusu-960.webp|/images/fog-1600.webp|/app.css|/favicon.ico 404|/sale 301")
  .split("|");
const agents = [
  "Firefox/152 Linux",
  "Firefox/152 Android",
  "WebKit/26 phone",
  "Chromium/151 desktop",
  "examplebot/2.1",
];

const promises: readonly string[] = `
an empty cart costs nothing|a voucher never makes a total negative|a gift message keeps its line breaks
shipping is free from the limit on|a sold-out tea cannot be ordered|the same order twice is two orders
a refund goes back the way it came|a parcel label names the country|prices are whole cents
the mail speaks the customer's language|an order note keeps its umlauts|a cancelled order frees its stock
the invoice names every line|a customer can forget a password|a weight is never below zero|the basket survives a login
a guest can order without an account|search ignores case and accents|a picture has a text for those who cannot see it
teaware is never discounted|a free sample costs nothing|an address keeps its floor|a second click sends nothing twice
the export ends with its own count|a voucher ends at midnight in Berlin|samples are not counted as stock`
  .trim()
  .split(/[|\n]/);
