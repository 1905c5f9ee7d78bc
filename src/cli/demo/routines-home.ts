/** What comes back every few days at home: the day's plan, weather, dinner, homework, words and places for Japan. */

import { table } from "./print.ts";
import { listOf, looked, rowsOf } from "./routine.ts";
import type { Routine } from "./routine.ts";

const today: Routine = {
  uses: 20,
  on: "any day",
  hours: [5, 5],
  write(chance, day) {
    const weekly: Readonly<Record<string, readonly string[]>> = {
      Mon: ["20:00  all    Bins"],
      Tue: [
        "09:30  Emi    Parcel pick-up",
        day.number < 8 ? "16:30  Mia    Piano" : "18:00  Jonas  Running with Henrik",
      ],
      Wed: ["15:00  Theo   Football"],
      Thu: day.number < 8 ? ["19:30  Jonas  Choir"] : ["17:15  Mia    Piano", "19:30  Jonas  Choir"],
      Fri: ["18:30  all    Pizza"],
      Sat: ["10:00  all    Market"],
      Sun: ["11:00  all    Call obachan"],
    };
    const [when = "", who = "", what = "", note = ""] = chance.draw(extras);
    const entries = [
      ...(weekly[day.weekday] ?? []),
      ...(once[day.date] ?? []),
      `${when}  ${who.padEnd(5)}  ${what}`,
    ].toSorted();
    const printed = [`${day.weekday} ${day.date}`, ...entries, `${entries.length} entries, no conflicts`];
    const shortly = entries.map((entry) => entry.replace(/^(\S+)\s+(\S+)\s+(.+)$/, "$3 ($2, $1)")).join(", ");
    const told = `${chance.draw(todayTells)} ${shortly}. ${note}`;
    return looked(chance.draw(todayAsks), `calendar_list {"from":"${day.date}","to":"${day.date}"}`, printed, told);
  },
};

/** What the arcs have put into the calendar. */
const once: Readonly<Record<string, readonly string[]>> = {
  "2026-09-24": ["19:30  Emi    Parents' evening, room 2.14"],
  "2026-09-25": ["07:00  Emi    Newsletter goes out"],
  "2026-09-29": ["04:30  Emi    Database move with Noor"],
  "2026-09-30": ["09:40  Theo   Passport, with the old one and a photo"],
  "2026-10-06": ["08:20  Theo   Dentist, Dr. Yildiz"],
  "2026-10-10": ["15:00  all    Wim is 75"],
};

const todayAsks = listOf(`
What's on today? | Today's plan, short version | who has to be where today | Good morning! Calendar?
Do we have anything today? | Read me the day please, I can't find my glasses
`);
const todayTells = ["Today:", "On the list:", "The day in one line:", "There is"];
const extras = rowsOf(`
- 07:45 | Mia | Swimming bag to school | The bag is still on the line outside.
- 14:00 | Theo | Playdate with Ole | Ole's mother brings him back at six.
- 12:30 | Emi | Lunch with Birte | She pays this time, you said.
- 08:00 | Jonas | Train to Hannover | He is back at 19 h.
- 16:00 | Mia | Return the violin book | It is under the sofa.
- 17:30 | Emi | Yoga | Your mat is in the car.
- 10:15 | Theo | Kindergarten trip to the mill | Rubber boots!
- 19:00 | Emi | Call with Noor | She will have the baby on her arm.
- 15:30 | Mia | Shoes, size 35 | The old ones pinch since last week.
- 11:00 | Emi | Photographer for the teapots | Half an hour is enough.
- 09:00 | Jonas | Chimney sweep | Somebody must be at home until ten.
- 13:00 | Mia | School ends early | Teachers' conference.
- 18:00 | all | Lantern building at kindergarten | Bring an empty cheese box.
- 20:15 | Emi | Book club | You are at page 40 of 310.
- 16:45 | Theo | Haircut | He wants it like the goalkeeper's.
- 07:30 | Emi | Blood donation | Drink something before.
- 14:30 | Mia | Friend's birthday (Lotte) | The present is wrapped, in the hall cupboard.
- 10:00 | Jonas | Bring the bike to the workshop | The chain, not the brakes.
- 17:00 | Emi | Elderberries with Gerda | Old clothes.
- 08:30 | Theo | Eye test | Second floor, no lift.
`);

const weather: Routine = {
  uses: 7,
  on: "any day",
  hours: [5, 6],
  write(chance, day) {
    const warm = 21 - Math.floor(day.number / 4);
    const [from, until] = [chance.between(5, 24), chance.between(8, 20)];
    const hours = Array.from({ length: 18 }, (_, at) => {
      const [hour, degrees] = [5 + at, warm - Math.floor(Math.abs(9 - at) / 2)];
      const rain = hour >= from && hour <= until ? chance.between(6, 9) * 10 : chance.between(0, 3) * 10;
      return ` {"hour":${hour},"degrees":${degrees},"rain_percent":${rain},"wind_kmh":${chance.between(6, 34)}},`;
    });
    const rain =
      from > until ? "dry all day" : from === until ? `a shower at ${from} h` : `rain from ${from} to ${until} h`;
    const told = `Up to ${warm} degrees, ${rain}. ${warm < 16 ? "The warm jackets." : chance.draw(weatherTells)}`;
    const printed = [`{"place":"Bremen","date":"${day.date}","hours":[`, ...hours, "]}"];
    return looked(chance.draw(weatherAsks), `weather {"place":"Bremen","date":"${day.date}"}`, printed, told);
  },
};

const weatherTells = ["Layers.", "Light jackets will do.", "Boots for Theo in any case."];
const weatherAsks = ["Rain today?", "Jackets or no jackets?", "What do the kids wear today?"];

const dinner: Routine = {
  uses: 13,
  on: "any day",
  hours: [15, 16],
  write(chance) {
    const [fridge = "", dish = ""] = chance.draw(dishes);
    return `> ${chance.draw(dinnerAsks)} ${fridge}\n< ${dish}`;
  },
};

const dinnerAsks = [
  "What can I cook with this:",
  "Fridge says:",
  "Dinner idea? I have",
  "Hungry people in 40 minutes. There is",
  "Help:",
];
const dishes = rowsOf(`
- half a squash, chickpeas, a tired lemon. | Roast the squash with the chickpeas and cumin for 25 minutes, lemon over
  it, yoghurt for those who may, tahini for Jonas.
- rice from yesterday, eggs, frozen peas, one carrot. | Fried rice. Hot pan, rice first until it dances, egg last.
  Twelve minutes, and if Theo may call it "pirate rice" he eats two bowls.
- potatoes, potatoes, and potatoes. | Rösti: grate, salt, wring out, fry slowly. Apple sauce for the children, smoked
  tofu and chives for the adults.
- 4 tomatoes, stale bread, basil. | Panzanella. Bread in cubes into the oven, tomatoes in salt for ten minutes,
  vinegar, oil, basil. No cooking at all.
- leek, oat cream, pasta. | Leek in plenty of oil until it gives up, oat cream, nutmeg, pasta water. Jonas can have
  all of it.
- soba and not much else. | Cold soba: cook, rinse, ice water; dip of soy, mirin and spring onion. A fried egg makes
  it a meal.
- mushrooms, many. | Mushroom goulash with paprika and a spoon of miso, and dumplings from the stale rolls. Forty
  minutes exactly.
- aubergine, miso, rice. | 茄子の味噌焼き: halve, score, fry, brush with miso, sugar and mirin, five minutes under the grill.
- red lentils and coconut milk. | Dal: lentils 20 minutes, then garlic and cumin in hot oil over it. Parsley on top.
- spinach that must go today. | Shakshuka in green: spinach, cumin, four eggs in hollows, lid on for six minutes,
  flatbread.
- white cabbage and an apple. | Okonomiyaki without fish flakes: cabbage, flour, egg, water; sauce from ketchup, soy
  and apple.
- beetroot, an orange, some feta (not for Jonas!). | Beetroot from the oven with orange and thyme; feta on three
  plates, roasted sunflower seeds on the fourth.
- noodles and peanut butter, honestly that's it. | Peanut noodles: peanut butter, soy, lime, chili, hot water. Peanuts
  are fine for Theo, it's only hazelnuts, but read the jar.
`);

const words: Routine = {
  uses: 15,
  on: "any day",
  since: 4,
  hours: [19, 20],
  write: (chance) => {
    const [ask = "", answer = ""] = chance.draw(phrases);
    return `> ${ask}\n< ${answer}`;
  },
};

const phrases = rowsOf(`
- Mia asks: how do you say "may I pet the deer?" | 「鹿を撫でてもいいですか。」 In Nara they'll say yes if she has a cracker.
- Japanese word of the day please | 木漏れ日 (komorebi): sunlight that falls through leaves. You'll see it in Kyoto in
  November.
- "excuse me, does this train stop in Tsuruga" ? | 「すみません、この電車は敦賀に止まりますか。」
- Jonas wants to order without meat for Mia | 「この子は肉を食べません。肉なしでお願いできますか。」 Fish stock may still be in it, so ask about
  出汁 too.
- what is the polite way to say thanks for the meal | ごちそうさまでした, after eating, to everyone who made it. Theo can shout
  it.
- Teach Theo to count to five | いち、に、さん、し、ご. For four, よん is just as good.
- my accent is rusty. A tongue twister? | 生麦生米生卵 (namamugi namagome namatamago). Three times, fast.
- How do I ask for a second futon | 「布団をもう一組お願いできますか。」
- what's "autumn leaves hunting" again | 紅葉狩り (momijigari): going out only to look at the leaves. Nobody shoots
  anything.
- Word for the smell after rain? | ペトリコール is borrowed; older people say 雨上がりの匂い.
- Mia's question: is there a word for cat café | 猫カフェ (neko kafe). Miso must not hear of it.
- Korean today! "it's delicious" for Jiwoo | 맛있어요! And if you mean it very much: 정말 맛있어요!
- How do I write "fragile" on a parcel to my mother | 「割れ物注意」 in red, on two sides.
- 「お世話になります」って英語でどう言う？ | There is no one phrase. To the inn: "Thank you in advance for having us."
- 中文的"小心烫"怎么翻译成德文？给茶壶的标签用。 | „Vorsicht, heiß!“ That fits on the tag, too.
`);

const places: Routine = {
  uses: 11,
  on: "any day",
  since: 6,
  hours: [18, 20],
  write(chance) {
    const [ask = "", query = "", found = "", answer = ""] = chance.draw(sights);
    const printed = found.split("; ").map((line, at) => `${at + 1}. ${line}`);
    return looked(ask, `web_search ${JSON.stringify({ query })}`, printed, answer);
  },
};

const sights = rowsOf(`
- Is the bamboo forest worth it with kids? | Arashiyama bamboo grove crowds November morning | Arashiyama: the path is
  400 m long, always open, free of charge; Crowds from 8 h, before 7 h you are nearly alone; 嵐山モンキーパーク: 9:00–16:00,
  adults ¥600, children ¥300, twenty minutes uphill; Romantic train along the river: reserved seats only, sold out
  early in November | Before seven or not at all. The monkey park above it is the better thing for Theo: ¥600 and
  twenty minutes uphill.
- When does Nijo castle open? | 二条城 開城時間 11月 休城日 | 二条城: 8:45–17:00（入城は16:00まで）; 休城日: 12月29日–31日、御殿は火曜休み(12月、1月); 入城料
  大人 ¥800、小学生 ¥200、未就学児無料; The nightingale floor chirps under every step, a defence against assassins | 8:45 to 17 h.
  The floor that chirps will be Theo's favourite thing in Kyoto.
- Something with trains for Theo | railway museum Kyoto children opening hours | 京都鉄道博物館: 10:00–17:00, closed
  Wednesdays; Adults ¥1,500, school children ¥500, from 3 years ¥200; Steam train ride of ten minutes, ¥300;
  Roundhouse with twenty locomotives, some under steam | The railway museum, ten minutes from the station, closed on
  Wednesdays. There's a real steam train.
- Matsumoto: what do we do there for three days? | Matsumoto castle Alps day trip Kamikochi November | 松本城:
  8:30–17:00, adults ¥1,200, steep stairs inside; Kamikochi closes on 15 November for the winter; Wasabi farm in
  Azumino: free, open all year, wasabi ice cream; Public bath with view of the Alps, tattoos not welcome | Kamikochi
  is closed by then, so the black castle, the wasabi farm by bicycle, and a day of bathing.
- can we see sumo? | sumo November 2026 basho Fukuoka Tokyo stable morning practice | The November tournament is in
  Fukuoka, 8–22 November; Morning practice in Tokyo stables pauses during the tournament; Sumo museum at Ryogoku:
  weekdays 10:30–16:00, free | Not this time: in November they wrestle in Fukuoka. The little museum in Ryogoku is
  free.
- Where do we buy presents in Kanazawa | 金沢 お土産 近江町市場 東茶屋街 | 近江町市場: 9:00–17:00, fish, sweets, lacquer; 東茶屋街: gold
  leaf, closed on some Tuesdays; Kaga boho: roasted stems of tea, a speciality of the town; 水引 cords, light and easy
  to pack | Kaga boho, the roasted stem tea. For the shop you could bring two kilos as a trial.
- Tokyo with children, one day, no theme park | Tokyo with kids one day Ueno museum park | 国立科学博物館 (Ueno): 9:00–17:00,
  adults ¥630, children free, closed Mondays; Toy shops in Harajuku; Boat from Asakusa to the bay, 40
  minutes; Light rooms at the bay: book weeks ahead | Science museum in Ueno in the morning, the boat from Asakusa
  at three. Children are free there.
- Does Kenrokuen have the ropes on the trees in November? | 兼六園 雪吊り 11月 | 雪吊り作業: from 1 November, the big pine first;
  兼六園: 8:00–17:00 until 15 October–end of February; ¥320, children ¥100; Evening light-up in November, free | Yes,
  they begin on 1 November with the big pine. You'll see them half done, which is the best.
- Luggage: can we send it ahead? | luggage forwarding Kyoto Matsumoto price | Forwarding hotel to hotel:
  ¥2,000–2,800 per suitcase; Arrives the next day, hand in before 15 h; Airport: two days ahead; Prams and skis are
  fine | Yes: about ¥2,500 a suitcase, next day. I'd send the two big ones from Kanazawa straight to Matsumoto.
- Which onsen takes families | family onsen private bath Matsumoto Asama kashikiri | 貸切風呂: private baths by the hour,
  ¥2,000–4,000; 浅間温泉: twenty minutes by bus from Matsumoto station; Children in nappies are usually not allowed;
  Towels ¥200 | Asama Onsen, with a private bath by the hour. Twenty minutes by bus.
- How cold is it in Kanazawa mid november | 金沢 11月中旬 気温 服装 | Average 7–15 degrees, rain on 18 of 30 days;
  「弁当忘れても傘忘れるな」; Snow in town not before mid December; Waterproof shoes recommended | 7 to 15 degrees and rain on
  every second day. The proverb there: forget your lunch, but never your umbrella.
`);

const homework: Routine = {
  uses: 7,
  on: "workdays",
  hours: [14, 15],
  write(chance) {
    const [tens, ones, small] = [chance.between(12, 48) * 10, chance.between(2, 9), chance.between(6, 9)];
    const big = tens + ones;
    const way = `${tens} × ${small} = ${tens * small}, ${ones} × ${small} = ${ones * small}, together ${big * small}`;
    const shared = `${big * small} : ${small}`;
    return chance.pick([
      `> Mia: ${big} × ${small}? She says 'you tell me', I say no\n< Let her split it: ${way}. Which part was easy?`,
      `> homework emergency: ${shared}\n< Ask how often ${small} fits into ${tens * small} first. The rest is hers.`,
      `> Is ${big * small + 10} right for ${big} × ${small}?\n< Nearly, ten too many: ${way}.`,
    ]);
  },
};

const reminders: Routine = {
  uses: 13,
  on: "any day",
  hours: [10, 18],
  write(chance, day) {
    const [ask = "", title = "", when = "", told = ""] = chance.draw(notes);
    const at = new Date(Date.parse(day.date) + chance.between(1, 4) * 86_400_000).toISOString().slice(0, 10);
    const id = `cal_${6_000 + day.number * 17 + chance.between(0, 16)}`;
    const printed = [
      `{"id":"${id}","title":"${title}","at":"${at}T${when}+02:00","for":["Emi"],"repeat":null,"conflicts":[]}`,
    ];
    return looked(ask, `calendar_add {"title":"${title}","start":"${at}T${when}"}`, printed, told);
  },
};

const notes = rowsOf(`
- remind me to water obachan's orchid, not too much | Orchid: half a glass | 08:00 | Half a glass, no more. It's in.
- Don't let me forget Birte's book | Give Birte her book back | 12:00 | In, with "it has coffee on page 12" as you
  whispered.
- I need to call the tax office when they're awake | Call the tax office | 09:15 | They answer from nine. Reminder
  set.
- the bike pump is at Jiwoo's | Fetch the bike pump from Jiwoo | 17:00 | Noted, and bring the empty kimchi jar.
- light bulbs!! | Buy light bulbs (E14, warm) | 16:00 | E14, warm white, three pieces, as last time you looked in the
  lamp.
- we're out of stamps for the postcards | Stamps, 10 pieces | 10:00 | Ten stamps, with the next post office trip.
- Theo promised Ole a dinosaur | Dinosaur for Ole into the bag | 07:20 | A promise is a promise. Seven twenty, before
  shoes.
- remind me to take the bread out of the freezer | Bread out of the freezer | 20:00 | Eight in the evening it is.
- Need to measure the window in Mia's room | Measure Mia's window | 18:30 | Width, height, and depth of the sill.
- I should descale the big kettle | Descale the big kettle | 11:00 | Citric acid, two spoons, half an hour.
- Please nag me about the photos for Gerda | Send photos to Gerda | 19:00 | I'll nag, politely, until they are sent.
- the library card of Mia expires | Renew Mia's library card | 15:00 | Noted; they want to see it in person.
- somebody must trim the hedge before the neighbours do | Trim the hedge | 10:30 | Work for Jonas, and it was not your
  idea.
`);

const connections: Routine = {
  uses: 6,
  on: "any day",
  since: 16,
  hours: [17, 19],
  write(chance) {
    const [from = "", to = "", minutes = "60", date = ""] = chance.draw(legs);
    const rows = Array.from({ length: 9 }, (_, at) => {
      const leaves = 8 * 60 + at * 47 + chance.between(0, 12);
      const clock = (minute: number): string => `${Math.floor(minute / 60)}:${String(minute % 60).padStart(2, "0")}`;
      const takes = Number(minutes) + chance.between(0, 14);
      return [
        clock(leaves),
        clock(leaves + takes),
        takes,
        chance.between(0, 2),
        chance.pick(["free", "few", "free"]),
      ] as const;
    });
    const quick = rows.reduce((best, row) => (row[2] < best[2] ? row : best));
    const told = `The quickest leaves at ${quick[0]} (${quick[2]} minutes); with Theo I'd take one without a change.`;
    const call = `train_search {"from":"${from}","to":"${to}","date":"2026-11-${date}"}`;
    return looked(
      `${from} to ${to}, what are the trains?`,
      call,
      table(["dep", "arr", "min", "changes", "seats"], rows),
      told,
    );
  },
};

const legs = rowsOf(`
- Kanazawa | Kyoto | 124 | 19
- Kyoto | Nagoya | 34 | 21
- Nagoya | Matsumoto | 125 | 21
- Matsumoto | Shinjuku | 156 | 24
- Kyoto | Nara | 44 | 20
- Kansai Airport | Kanazawa | 240 | 15
`);

const kept: Routine = {
  uses: 8,
  on: "any day",
  hours: [16, 18],
  write: (chance) => {
    const [ask = "", answer = ""] = chance.draw(larder);
    return `> ${ask}\n< ${answer}`;
  },
};

const larder = rowsOf(`
- How long does cooked rice keep? | Two days in the fridge, cooled down fast. Fried rice wants it from yesterday
  anyway.
- Is miso ever bad? | Hardly. A year in the fridge; if it darkens it only gets stronger.
- How many grams is a cup of flour | About 125 g if you spoon it in, 150 if you scoop. That's why weighing is better.
- can I freeze tofu | Yes, and it gets better: spongy, it soaks up sauce. Press it after thawing.
- opened oat cream, how long | Four days, closed, at the back of the fridge.
- 180 fan is what without fan? | 200 top and bottom heat, same time.
- can elderberries be eaten raw? | No, boil them for ten minutes at least. Raw ones upset the stomach.
- Half a teaspoon of dry yeast is how much fresh? | About 5 g fresh for half a teaspoon of dry.
`);

export const homeRoutines: readonly Routine[] = [
  today,
  weather,
  dinner,
  words,
  places,
  homework,
  reminders,
  connections,
  kept,
];
