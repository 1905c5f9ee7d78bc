/** What comes back every few days in the shop: orders, parcels, logs, small bugs, letters. */

import type { Chance } from "./chance.ts";
import { printLines, products, table } from "./print.ts";
import type { Product } from "./print.ts";
import { listOf, looked, rowsOf } from "./routine.ts";
import type { Day, Routine } from "./routine.ts";

const euros = (cents: number): string => `€${(cents / 100).toFixed(2)}`;
const cities =
  "Bremen Leipzig Aachen Kiel Graz Ulm Jena Utrecht Mainz Vienna Aarhus Erfurt Köln Lübeck Ghent Passau".split(" ");
const names = "Anke Birgit Carlo Dörte Emil Frauke Greta Henrik Ilse Jorin Katja Lale Mads Nele Otis Petra".split(" ");
/** Orders of the days after the newsletter; of an ordinary day, about 28. */
const busy: Readonly<Record<number, number>> = { 20: 94, 21: 71, 22: 49 };
/** The first order of those that a morning tells of. */
const orderNumber = (day: Day): number =>
  Object.entries(busy).reduce(
    (no, [on, count]) => no + (Number(on) < day.number ? count - 28 : 0),
    20_362 + day.number * 28,
  );

const sales: Routine = {
  uses: 26,
  on: "any day",
  hours: [5, 6],
  write(chance, day) {
    const count = busy[day.number] ?? chance.between(24, 35);
    const orders = Array.from({ length: count }, (_, index) => {
      const items = Array.from({ length: chance.between(1, 3) }, () => pickItem(chance));
      return {
        no: `FL-${orderNumber(day) + index}`,
        who: chance.pick(names),
        city: chance.pick(cities),
        items: items.map(({ pieces, name }) => `${pieces}× ${name}`).join(", "),
        cents: sumOf(items),
        state: chance.between(1, 14) === 1 ? "open" : "paid",
      };
    });
    const sum = euros(orders.reduce((total, { cents }) => total + cents, 0));
    const most = orders.reduce((most, order) => (order.cents > most.cents ? order : most));
    const unpaid = orders.filter(({ state }) => state === "open").map(({ no, who }) => `${no} (${who})`);
    const open = unpaid.length === 0 ? "All are paid." : `Not paid yet: ${unpaid.join(", ")}.`;
    const told = chance.pick([
      `${count} orders for ${sum}. The largest is ${most.no} from ${most.city} with ${euros(most.cents)}. ${open}`,
      `${count} came in, ${sum} together. ${open} ${most.who} from ${most.city} ordered most.`,
      `${count} orders since yesterday, ${sum}. ${open}`,
    ]);
    const columns = ["order_no", "name", "city", "items", "total_cents", "state"];
    const query = `select ${columns.join(", ")} from orders where created_at > '${day.date}'::date - 1`;
    const rows = orders.map((order) => Object.values(order));
    return looked(chance.draw(salesAsks), `sql ${JSON.stringify({ query })}`, table(columns, rows), told);
  },
};

const pickItem = (chance: Chance): Product & { readonly pieces: number } => ({
  ...chance.pick(products),
  pieces: chance.between(1, 2),
});
const sumOf = (items: readonly { readonly cents: number; readonly pieces: number }[]): number =>
  items.reduce((sum, { cents, pieces }) => sum + cents * pieces, 0);

const salesAsks = listOf(`
Anything new since yesterday? | Morning! How many orders since yesterday? | orders?
What did we sell since yesterday morning? | Good morning, the orders please
Let's see the orders before the kids wake up | How was yesterday, order-wise?
Coffee first, then orders. Ok, orders now.
`);

const packing: Routine = {
  uses: 17,
  on: "workdays",
  hours: [6, 7],
  write(chance, day) {
    const piecesMax = chance.between(5, 12);
    const wanted = new Map<Product, number>();
    for (let line = 0; line < 22; line++) wanted.set(chance.pick(products), chance.between(1, piecesMax));
    const list = [...wanted].toSorted(([a], [b]) => (a.shelf < b.shelf ? -1 : 1));
    const pieces = list.reduce((sum, [, count]) => sum + count, 0);
    const parcels = Math.ceil(pieces / 2.4);
    const [most, times] = list.reduce((most, line) => (line[1] > most[1] ? line : most));
    const printed = list.map(([{ shelf, sku, name }, count]) => {
      const boxes = Array.from({ length: Math.ceil(count / 2) }, () => orderNumber(day) - chance.between(1, 28));
      return ` {"shelf":"${shelf}","sku":"${sku}","name":"${name}","pieces":${count},"for":[${boxes.join()}]},`;
    });
    const told = chance.pick([
      `${parcels} parcels, ${pieces} pieces. Mostly ${most.name}: ${times} from ${most.shelf}. It's on his tablet.`,
      `He has ${parcels} parcels today, beginning at shelf ${list[0]?.[0].shelf}. ${most.name} leads with ${times}.`,
      `${pieces} pieces in ${parcels} parcels; refill ${most.shelf} (${most.name}) first, he needs ${times}.`,
    ]);
    const whole = [`{"date":"${day.date}","parcels":${parcels},"lines":[`, ...printed, "]}"];
    return looked(chance.draw(packingAsks), `packing_list {"date":"${day.date}"}`, whole, told);
  },
};

const packingAsks = listOf(`
What does Pavel have to pack today? | Packing list for Pavel? | Pavel is here early, what's first?
How many parcels today? | Is it a big packing day? I have to plan the car
`);

const workerCheck: Routine = {
  uses: 13,
  on: "any day",
  hours: [17, 20],
  write(chance, day) {
    const start = `${day.date}T${chance.between(12, 14)}:${chance.between(10, 50)}`;
    const lines = printLines(chance, `worker ${chance.between(54, 70)} ${start}`);
    const slowest = Math.max(...lines.map((line) => Number(/(\d+) ms$/.exec(line)?.[1])));
    const captures = lines.filter((line) => line.includes(" capture ")).length;
    const told = chance.pick([
      `Quiet: ${lines.length} jobs, ${captures} of them captures, the slowest took ${slowest} ms.`,
      `Healthy. ${captures} captures went through, none was tried twice, slowest ${slowest} ms.`,
      `Nothing to worry about: all ${lines.length} ok, at most ${slowest} ms.`,
      `It does what it should: ${captures} payments taken, ${slowest} ms for the slowest job.`,
      `${lines.length} lines, not one warning${slowest > 1_800 ? `; ${slowest} ms once, the label printer` : ""}.`,
    ]);
    const command = `journalctl -u payment-worker --since '${start.replace("T", " ")}' | tail -${lines.length}`;
    return looked(chance.draw(workerAsks), `shell ${JSON.stringify({ command })}`, lines, told);
  },
};

const workerAsks = listOf(`
Is the payment worker happy? | quick look at the worker please, someone waited long for a confirmation
Does the worker behave today? | Any trouble in the payment log this afternoon?
Check the worker before I close the laptop?
`);

const requests: Routine = {
  uses: 12,
  on: "any day",
  hours: [10, 16],
  write(chance, day) {
    const [ask = "", path = "", status = "", agent = "", told = ""] = chance.draw(incidents);
    const start = `${day.date}T0${chance.between(7, 9)}:${chance.between(10, 40)}`;
    const lines = printLines(chance, `requests ${chance.between(58, 74)} ${start}`).map((line) => {
      const rest = `${status} ${chance.between(300, 900)} ms=${chance.between(1_010, 2_900)} "${agent}"`;
      return chance.between(1, 6) > 1 ? line : line.replace(/"GET.+/, `"GET ${path}" ${rest}`);
    });
    const met = lines.filter((line) => line.includes(`"GET ${path}"`)).length;
    const command = `tail -${lines.length} /var/log/caddy/access.log`;
    return looked(ask, `shell ${JSON.stringify({ command })}`, lines, told.replace("{n}", String(met)));
  },
};

const incidents = rowsOf(`
- The site felt slow at lunchtime, was it? | /search?q=ostfriesen | 200 | Chromium/151 desktop | Only the search: {n}
  times over a second, all from one visitor who kept typing. The other pages were quick.
- A link in the old blog is dead, someone says | /blog/2021/first-tea | 404 | Firefox/152 Linux | It is: {n} people
  followed it today. I redirect it to the journal now.
- So many visitors suddenly. People or robots? | /tea/green?page=2 | 200 | examplebot/2.1 | A robot, {n} requests in a
  few minutes, and polite about it. I asked it to come at night.
- My sister got an error page | /checkout/gift | 500 | WebKit/26 phone | She did, {n} times: the gift page failed on
  empty messages. Fixed and deployed.
- I changed the menu yesterday, does everybody find things? | /black-tea | 301 | Firefox/152 Android | {n} people
  still come by the old address; the redirect carries them along.
- Is someone trying passwords on the site?? | /wp-login.php | 404 | examplebot/2.1 | Only a scanner that looks for
  other software than ours, {n} tries. Blocked for a day.
- Pictures didn't load for Birte this morning | /images/garden-1600.webp | 503 | Firefox/152 Android | The cache was
  restarting just then; {n} pictures were missing for half a minute.
- Why does everyone read the newsletter archive? | /newsletter/2025-12 | 200 | WebKit/26 phone | A forum linked to
  it: {n} visits in a few minutes. Kind words about your soup recipe, by the way.
- Pavel's tablet shows an old list | /packing.json | 304 | Firefox/152 Android | It asked {n} times and was told
  "unchanged", wrongly. The list is never cached now.
- A customer says her cart empties itself | /cart/add | 401 | WebKit/26 phone | Her browser forbids all cookies, {n}
  refusals. I wrote her how to allow ours.
- The Kyusu page is slow, isn't it | /teaware/kyusu-sencha | 200 | Chromium/151 desktop | It was: {n} times over a
  second because of one picture with 4,000 pixels. Shrunk.
- Is somebody copying our texts? | /journal/first-flush | 206 | examplebot/2.1 | Looks like it, {n} slices of one
  article. I slowed that robot down to one page a minute.
`);

const orderDetail: Routine = {
  uses: 10,
  on: "workdays",
  hours: [7, 16],
  write(chance, day) {
    const no = `FL-${orderNumber(day) - chance.between(30, 90)}`;
    const [who, city] = [chance.draw(names), chance.pick(cities)];
    const items = Array.from({ length: chance.between(2, 4) }, () => pickItem(chance));
    const cents = sumOf(items) + (sumOf(items) < 3_900 ? 490 : 0);
    const method = chance.pick(["card", "transfer", "invoice"]);
    const steps = ["ordered", "paid", "packed", "handed over", "in the depot", "delivered"].slice(
      0,
      chance.between(3, 6),
    );
    const last = steps.at(-1) ?? "";
    const events = steps.map((step, at) => {
      const ms = Date.parse(day.date) - (steps.length - at) * 15 * 3_600_000 + chance.between(0, 5_000_000);
      return {
        step,
        at: new Date(ms).toISOString(),
        by: ["customer", "gateway", "pavel", "pavel", "carrier", "carrier"][at],
      };
    });
    const customer = { name: who, city, orders_before: chance.between(0, 11) };
    const payment = { method, attempts: 1, state: "captured" };
    const order = { order: no, customer, items, total_cents: cents, payment, events };
    const list = items.map(({ name, pieces }) => `${pieces} × ${name}`).join(", ");
    const told = chance.pick([
      `${who}'s order is ${last}: ${list}, ${euros(cents)}.`,
      `Last step: ${last}. Paid by ${method}, ${euros(cents)}, to ${city}. I wrote ${who} so.`,
      `${last === "delivered" ? "Delivered" : `Not there yet, ${last}`}; ${euros(cents)} by ${method}. ${who} knows.`,
    ]);
    const printed = JSON.stringify(order, null, 1).split("\n");
    return looked(chance.draw(detailAsks).replace("{no}", no), `order_get {"order":"${no}"}`, printed, told);
  },
};

const detailAsks = listOf(`
What's with {no}? The customer asks. | Where is {no}? | {no}: did we send that?
Someone on the phone about {no}, quick please
`);

const machine: Routine = {
  uses: 8,
  on: "any day",
  hours: [18, 20],
  write(chance, day) {
    const name = day.number < 23 ? "wren" : "heron";
    const used = name === "wren" ? 93 + Math.floor(day.number / 8) : 21 + Math.floor(day.number / 5);
    const [load, left] = [`0.${chance.between(10, 90)}`, 72 - day.number];
    const units = [
      "web",
      "payment-worker",
      "payment-webhook",
      "shop-export",
      "image-resize",
      "caddy",
      "chrony",
      "sshd",
      "cron",
    ];
    const rows = units.map((unit) => [
      unit,
      /export|resize/.test(unit) ? "waiting" : "running",
      chance.between(300, 9_000),
      `${chance.between(0, 9)}.${chance.between(0, 9)}`,
      chance.between(12, 420),
      `${chance.between(1, 40)} d`,
    ]);
    const printed = [
      `${name}  load ${load} 0.${chance.between(20, 80)} 0.${chance.between(20, 70)}`,
      ...table(["unit", "state", "pid", "cpu", "memory_mb", "since"], rows),
      `disk / ${used} %   backup ${day.date} 02:${chance.between(11, 16)} ok   certificates ${left} days`,
    ];
    const told = chance.pick([
      `${name} is fine: load ${load}, disk at ${used}%, last night's backup is there.`,
      `All services run on ${name}, disk ${used}%, certificates good for ${left} more days.`,
    ]);
    return looked(chance.draw(machineAsks), `shell {"command":"ssh ${name} ./status"}`, printed, told);
  },
};

const machineAsks = [
  "How is the server?",
  "server ok?",
  "Everything green on the machine?",
  "One look at the server please",
];

export const shopRoutines: readonly Routine[] = [sales, packing, workerCheck, requests, orderDetail, machine];
