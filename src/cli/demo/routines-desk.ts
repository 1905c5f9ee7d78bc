/** What else lands on the shop owner's desk: small bugs, letters from customers, texts for teas. */

import { printLines } from "./print.ts";
import { looked, rowsOf } from "./routine.ts";
import type { Routine } from "./routine.ts";

const fixes: Routine = {
  uses: 12,
  on: "workdays",
  hours: [8, 10],
  write(chance) {
    const [saw = "", path = "", was = "", now = "", told = ""] = chance.draw(bugs);
    const line = chance.between(12, 140);
    const found = looked(
      saw,
      `search_code {"near":"${path}"}`,
      [`${path}:${line}: ${was}`],
      `Found it in ${path}, line ${line}.`,
    );
    const diff = [`--- ${path}`, `+++ ${path}`, `@@ -${line} +${line} @@`, `-${was}`, `+${now}`];
    const tests = printLines(chance, `tests ${chance.between(20, 26)}`);
    return `${found}\n$ apply_patch {"path":"${path}"}\n=${diff.join("\n|")}
$ shell {"command":"npm test -- --affected-by ${path}"}\n=${tests.join("\n|")}\n< ${told}`;
  },
};

const bugs = rowsOf(`
- The basket badge says 3 after I removed everything | cart/badge.ts | badge.text = cart.lines.length; | badge.text =
  cart.pieces || ""; | It counted lines, not pieces, and never went away. Now it does.
- Danish postcodes are "invalid"?? | checkout/address.ts | return /^[0-9]{5}$/.test(code); | return
  postcodes[country].test(code); | Four digits were not allowed anywhere. Each country has its own pattern now.
- The date on an invoice is one day early if someone orders after midnight | invoice/date.ts |
  at.toISOString().slice(0, 10) | formatDay(at, "Europe/Berlin") | It was the date in London, so to speak. Now it's
  the date in Bremen.
- Search finds nothing when there's a blank at the end (phone keyboards add one) | search/query.ts | const words =
  text; | const words = text.trim().normalize(); | The blank is cut off, on phones and everywhere.
- Back button in the checkout empties the address 😡 | checkout/form.ts | form.reset(); | restore(form, draft); | It
  keeps what was typed until the order is placed.
- Pavel prints half sentences: gift messages are cut off at 60 letters | labels/gift.ts | message.slice(0, 60) |
  wrap(message, 38, 6) | Six lines of 38 letters fit on the card, so nothing is cut.
- The filter "caffeine-free" shows Assam. Bold. | catalogue/filter.ts | tea.caffeine !== "high" | tea.caffeine ===
  "none" | Now it shows the 6 teas that really have none.
- Pictures jump around while the page loads on my phone | catalogue/card.ts | "<img src=" + url + ">" | image(url, {
  width: 480, height: 480 }) | Every picture reserves its square now, nothing jumps.
- My brother ordered minus one tins. It worked. | cart/pieces.ts | const pieces = Number(input); | const pieces =
  clamp(Number(input), 1, 99); | From 1 to 99 from now on. I cancelled his order, he owes you a tin.
- Stock says 0.30000000000000004 kg of Hojicha | stock/weight.ts | kg = a + b; | grams = a + b; | Weights are whole
  grams from now on.
- The packing list sorts shelf A10 before A2 | labels/shelf.ts | a < b ? -1 : 1 | a.localeCompare(b, "de", { numeric:
  true }) | A2 comes before A10, as in the room.
- Newsletter signup thanks you even for "asdf" | mail/signup.ts | if (address) subscribe(address); | if (await
  confirms(address)) subscribe(address); | Nobody is on the list before they click the link in the mail.
`);

const letters: Routine = {
  uses: 14,
  on: "workdays",
  hours: [7, 10],
  write(chance, day) {
    const [ask = "", who = "", subject = "", text = "", answer = ""] = chance.draw(mails);
    const id = `m_${87_100 + day.number * 31 + chance.between(0, 30)}`;
    const mail = [
      `{"hits":[{"id":"${id}","from":"${who.toLowerCase()}@mail.example",`,
      ` "to":"hello@fogleaf.example","date":"${day.date}","subject":"${subject}","flags":["unread"],`,
      ` "text":"Hello, ${text} Kind regards, ${who}"}],"unread":1}`,
    ];
    return looked(ask, `mail_search {"query":"is:unread from:${who}","full":true}`, mail, answer);
  },
};

const mails = rowsOf(`
- New mail about cold brew, can you answer? | Solveig | Cold brew | which of your teas is good overnight in cold
  water, and how much per litre? | Draft: "Sencha or White Peony, 12 g per litre, eight hours in the fridge. Hojicha
  if you like it darker." Shall I send it?
- Someone asks about a lost parcel | Ruth | Where is my parcel | the tracking has said 'in transit' for six days. It
  was a birthday present. | It has been in a depot since Monday. Draft: new parcel today by express, and she keeps
  both if the first turns up.
- There's a complaint, I don't want to read it | Torben | Disappointed | the Gyokuro tastes bitter, like spinach
  water. I used boiling water as always. | Boiling water is the culprit. Draft: "60 degrees, ninety seconds, and
  please let us send you 20 g to try again."
- A school wants to visit?? | Imke | Visit with class 4b | we are 23 children and would like to smell tea. Is that
  possible on a Tuesday? | Tuesday is parcel day, so I offered two Mondays in January and a nose quiz.
- Wholesale request, what do I say | Matteo | Cafe | we open a small cafe in spring and need about 2 kg of Assam a
  month. | From 2 kg a month you can give 25%. Draft says that, with a sample pack of three Assams.
- Customer wants the lid of a kyusu only | Hedda | Broken lid | I dropped the lid of my kyusu. Is there a spare part?
  | Lids are fired together with their pot, so there are none. I told her about kintsugi and offered 20% off a new
  one.
- Mail in Dutch I think | Sanne | Levertijd | hoe lang duurt de levering naar Utrecht, en kan ik per overschrijving
  betalen? | Answered in Dutch: three to four days, and yes, by transfer.
- Is that spam or a real journalist? | Wiebke | Interview | I write for a regional paper about people who left their
  job to sell tea. | Real: she wrote about the bookshop in your street in June. I offered Thursday at ten.
- Somebody asks about organic certificates | Ludwig | Organic? | are your Japanese teas certified organic? It does not
  say so on the page. | Three are, the others come from farms too small to pay for the paper. Draft says exactly that.
- The nice old man from Lübeck again | Johannes | Thank you | the Lapsang reminds me of the harbour in 1962. Please
  never stop selling it. | I thanked him, and put a note on his account: always a sample of something smoky.
- A returned parcel, why? | Elif | Return | the parcel came back to you as 'address unknown', but I live here. | The
  house number was missing. Draft asks for it and promises to send it again free of charge.
- invoice question in the inbox | Konrad | Invoice for company | could you add our VAT number to the invoice of last
  week? | Corrected and sent as a new version; the old one is marked as cancelled.
- Someone wants to cancel but it's already packed | Aylin | Cancel please | I ordered two tins by mistake and only
  want one. Can you still change that? | Pavel took one tin out again, the difference goes back to her card.
- Question about pregnancy and tea, careful | Bastian | Which tea | my wife is expecting. Which teas are without
  caffeine? | Rooibos and peppermint have none; for anything else I wrote that she should ask her midwife.
`);

const texts: Routine = {
  uses: 9,
  on: "any day",
  hours: [18, 20],
  write(chance) {
    const [tea = "", text = ""] = chance.draw(descriptions);
    return `> ${chance.draw(textAsks).replace("{tea}", tea)}\n< ${text}`;
  },
};

const textAsks = [
  'Two sentences for {tea} please, no "exquisite"',
  "I need a product text for {tea}",
  "Write something about {tea}? Like you'd tell a friend.",
];

const descriptions = rowsOf(`
- Hojicha | Roasted until it smells of warm bark and toast, and so low in caffeine that it may come to the table in
  the evening. A tea that takes off its shoes.
- Gyokuro | Three weeks in the shade have made it thick, sweet and a little like broth. Give it 60 degrees, ninety
  seconds and your whole attention.
- Lapsang Souchong | A campfire you can drink, dried over pine wood in the mountains. Not for everyone, and that is
  the point.
- White Peony | Hardly anything was done to it, and it shows: hay, melon, a morning without plans. It forgives every
  water temperature.
- Tieguanyin | Rolled into small dark pearls that open for six infusions. The first smells of lilac, the last of rain.
- Genmaicha | Green tea with puffed rice, invented by people who had little and shared it. Tastes of popcorn and of
  coming home.
- Darjeeling First Flush | The first leaves after the winter, light as a letter. Three minutes, not a second more, and
  no milk, please.
- Jasmine Pearls | For five nights fresh blossoms lie on the leaves and are carried away each morning. What stays is
  the scent of the last summer evening.
- Jin Xuan Oolong | Soft like warm milk although there is none in it. Begin your friends with this one, they will ask
  for the others.
`);

export const deskRoutines: readonly Routine[] = [fixes, letters, texts];
