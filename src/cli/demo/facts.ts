/**
 * What a reader of the demo's conversation would expect to be remembered: decisions with their reasons, numbers, names,
 * dates; of what was revised, the last version. The yardstick of every summariser. Answers are names and numbers rather
 * than phrases, so that other words for the same are no loss.
 */

export interface KeyFact {
  readonly question: string;
  /** Strings that must all appear where the fact is told. */
  readonly answer: readonly string[];
  /** The entry that tells it. */
  readonly saidIn: string;
}

const fact = (saidIn: string, question: string, ...answer: readonly string[]): KeyFact => ({
  question,
  answer,
  saidIn,
});

/** In the order in which they were said. */
export const keyFacts: readonly KeyFact[] = [
  fact("charged-twice-04", "Why were three customers charged twice?", "without an idempotency key"),
  fact("charged-twice-10", "How much was refunded to them in all?", "€184.70"),
  fact("calendar-09", "What is Theo allergic to, and where is his pen?", "hazelnuts", "red pouch"),
  fact("japan-when-04", "What may the journey to Japan cost?", "€7,500"),
  fact("sourdough-two-04", "How is the sourdough fed, and how long does it rise?", "1:4:4", "three hours"),
  fact("retries-03", "What is the idempotency key made of?", "order number", "invoice version"),
  fact("longjing-10", "林女士那里订了多少龙井，什么价钱？", "12公斤", "每公斤680元"),
  fact(
    "new-machine-10",
    "What is the new machine called, where is it, what does it cost?",
    "heron",
    "Falkenstein",
    "€16.90",
  ),
  fact("jjigae-03", "Who in the family eats no meat?", "Mia", "eat meat"),
  fact("school-clash-06", "When is the journey, and why not earlier?", "14 to 28 November", "recital"),
  fact("cents-04", "How is money stored in the new database?", "bigint", "whole cents"),
  fact("flights-07", "What is the confirmation code of the flights?", "K7QX2M"),
  fact("piano-moves-04", "When is Mia's piano lesson, and with whom?", "Mrs Sommer", "Thursdays", "17:15"),
  fact("august-lines-06", "Which sample goes into which parcels?", "Lapsang", "parcel over €50"),
  fact("export-lock-06", "What does ERR_LOCK_TIMEOUT of the export mean?", "ERR_LOCK_TIMEOUT", "backup"),
  fact("shipping-08", "From which amount is shipping free?", "shipping", "€39"),
  fact("parents-evening-04", "When and where is the parents' evening?", "24 September", "19:30", "2.14"),
  fact("newsletter-08", "Which voucher code is in the newsletter, and until when?", "HERBST10", "4 October"),
  fact("ryokan-03", "母が勧めた京都の旅館の名前は？", "川霧"),
  fact("clock-04", "What caused ERR_WEBHOOK_CLOCK_SKEW?", "ERR_WEBHOOK_CLOCK_SKEW", "chrony"),
  fact("dry-run-07", "How long did the first dry run take, and why?", "47 minutes", "four indexes"),
  fact("wim-birthday-03", "Who needs food without gluten?", "Gerda", "coeliac"),
  fact("ryokan-booked-04", "Which room is booked, at what price, paid how?", "紅葉の間", "¥59,400", "cash only"),
  fact("week-plan-03", "Which herb does she not like?", "coriander"),
  fact("refund-rule-04", "What is refunded without a return?", "€20", "once per customer"),
  fact("rail-06", "Do they buy the rail pass?", "No rail pass", "¥92,410"),
  fact("retries-again-04", "How often does the payment worker retry?", "5 times", "30 minutes"),
  fact("move-date-06", "When is the database move, and why then?", "29 September", "04:30", "newsletter"),
  fact("broken-teapots-08", "How many teapots were broken?", "14 of 60", "€165.20"),
  fact("passport-10", "When is the appointment for Theo's passport?", "30 September", "9:40"),
  fact("advent-10", "How many advent calendars, at what price?", "150", "€34", "16 October"),
  fact("dashi-06", "母の出汁の分量は？", "昆布10グラム", "鰹節20グラム"),
  fact("boiler-06", "What does E27 on the boiler mean?", "E27", "low water pressure"),
  fact("queue-alarm-06", "When does the queue ring an alarm?", "25 jobs", "10 minutes"),
  fact("move-night-08", "How many orders were moved?", "41,382"),
  fact("allergens-04", "What may Rooibos Vanilla contain?", "almond", "hazelnut"),
  fact("invoices-04", "Where do gapless invoice numbers start?", "FL-2026-07001"),
  fact("longjing-late-02", "When does the Longjing arrive, and why so late?", "National Day", "20 October"),
  fact("boiler-again-05", "When does Mr Kruse come, and for what?", "14 October", "expansion vessel", "€280"),
  fact("swimming-08", "When is Theo's swimming course?", "Wednesdays", "15:45", "21 October"),
  fact("busan-07", "Do they go to Busan?", "no Busan", "Easter"),
  fact("plum-cake-06", "Which cakes are baked for Wim?", "plum cake", "streusel"),
  fact("fees-06", "What is done about the higher card fee?", "1.9%", "January"),
  fact("passport-done-06", "Why does the airline refuse the new passport?", "DOC_NAME_MISMATCH", "Theo Wim"),
  fact("wren-off-09", "Where is the final dump, and its passphrase?", "crane tin", "blue folder"),
  fact("fox-box-10", "What does Mia get for her drawing?", "50 cents"),
  fact("data-plan-08", "How do the phones get online in Japan?", "eSIM", "20 GB"),
  fact("thank-wim-08", "What is to be planned in spring?", "Hamburg", "Wim"),
];
