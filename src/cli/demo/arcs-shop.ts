/** The shop beyond money and machines: tea, suppliers, letters, parcels, Christmas. Notation: read.ts. */

export const shopArcs = `
@ longjing 09-11 06:30
> Ms Lin wrote, can you translate? 「您好！今年的明前龙井还有少量库存，每公斤680元，最少订5公斤。国庆节前可以发货。」
< "Hello! We still have a small stock of this year's pre-Qingming Longjing, 680 yuan per kilo, at least 5 kilos. We
can ship before the National Day holiday."
> How much is that in euros and is it a good price?
$ exchange {"from":"CNY","to":"EUR","amount":680}
={"amount":680,"from":"CNY","to":"EUR","rate":0.1224,"result":83.23,"at":"2026-09-11T06:00:00Z"}
$ sql {"query":"select bought_on, kg, eur_per_kg from purchases where sku like 'LON%' order by 1 desc limit 4"}
= bought_on  | kg | eur_per_kg
|------------+----+------------
| 2026-04-20 |  8 |      91.50
| 2025-10-02 |  6 |      88.00
| 2025-04-18 |  8 |      89.90
| 2024-10-11 |  5 |      84.20
< €83 a kilo; you paid 91.50 in April. It's her best price in two years.
> Then 12 kg. Write to her in Chinese please, warm, she's an old friend of the shop.
< 「林女士，您好！谢谢您想到我们。请给我们留12公斤明前龙井，每公斤680元。国庆节前发货最好。祝生意兴隆，中秋快乐！」
> What did you wish her?
< Good business and a happy Mid-Autumn Festival; it is on the 25th this year.
> 很好，发吧！
< 已发送。林女士会收到订单和收货地址。

@ august-lines 09-14 09:20
> Here are all order lines of August from the old system, as csv. Which tea do I have to reorder for autumn, and is
there anything that nobody wants?
|
|<file name="order-lines-2026-08.csv" mime="text/csv">
|* csv 760
|</file>
? 760 lines. Group by SKU: pieces and revenue. Then look at the tail.
< Read: 760 lines, from 1 to 31 August. By pieces, Genmaicha leads with 194, then Peppermint with 135 and Assam with
125. The weakest is Lapsang Souchong with 32 pieces. People seem to like it when they try it, but nobody tries it.
> Poor smoky thing. What would you do?
< Put a 10 g sample of it into every parcel over 50 euros in October, and don't reorder until spring.
> Do that. Pavel should know.
< Note for Pavel written: from 1 October a Lapsang sample (10 g) goes into every parcel over €50.
> and reorder the top three, double of last time

@ newsletter 09-16 06:45
> Autumn newsletter goes out on Friday the 25th. I need a subject line and I want a code, HERBST12, 12 percent.
< Three subjects: "The kettle is on again", "Fog outside, leaves inside", "Something warm for the short days".
> "Fog outside, leaves inside" !!! That's us.
? margin of Gyokuro ~31 %, shipping 4.90 on 39 = 12.5 %, so 12+12.5 leaves 6.
< It is. For the code: with free shipping from 39 at the same time, 12% would eat most of the margin on the Japanese
teas.
> how much can I give
< 10% leaves you a little on every tea. Below that it doesn't feel like a present.
> ok HERBST10, 10 percent, until 4 October, not on teaware.
< Final: code HERBST10, 10%, valid until 4 October, teas only. Subject "Fog outside, leaves inside", Friday 25
September, 7 h.
$ shell {"command":"./newsletter create --template autumn --code HERBST10 --send-at 2026-09-25T05:00Z --test
emi@fogleaf.example"}
=template autumn: 6 blocks, 2 pictures (184 kB)
|voucher HERBST10: 10 %, categories tea, until 2026-10-04T21:59Z
|recipients: 6,204 confirmed, 37 bounced before and left out
|test sent to emi@fogleaf.example
< Test mail is in your inbox.
> Looks beautiful. Only the "Unsubscribe" is in 4 pt, make it readable please, I hate that.
< Made it as large as the rest.

@ newsletter-result 09-28 17:15
> So? Did the newsletter work?
$ sql {"query":"select date(created_at) d, count(*) orders, sum(total_cents)/100 eur, count(*) filter (where
voucher='HERBST10') coded from orders where created_at > '2026-09-24' group by 1 order by 1"}
=     d      | orders |  eur  | coded
|------------+--------+-------+-------
| 2026-09-24 |     26 |   988 |     0
| 2026-09-25 |     94 |  4211 |    58
| 2026-09-26 |     71 |  3160 |    39
| 2026-09-27 |     49 |  2087 |    22
|(4 rows)
< It did: 214 orders in three days instead of about 85, 119 of them with the code. The average basket rose to €44.
> Free shipping works!! People stretch to 39
< They do: two baskets of three ended between 39 and 46 euros.
> I want to hug this spreadsheet

@ broken-teapots 09-24 06:20
> Pallet with the glass teapots arrived, Pavel says it sounds like a wind chime 😩
< Oh no. Count first, photograph before unpacking further, and keep every box: the carrier will ask.
> 14 of 60 are broken. Pavel took photos.
$ mail_search {"query":"glass teapot pallet terms damage claim carrier"}
={"hits":[
| {"from":"orders@glassworks.example", "date":"2026-08-19", "subject":"Order 7731 confirmed", "snippet":"60 teapots
0.8 l, pallet, delivered duty paid …"},
| {"from":"claims@freight.example", "date":"2025-11-03", "subject":"Your claim 20931", "snippet":"visible damage must
be reported within 7 days …"}
|]}
< Delivered duty paid: the glassworks carries the risk, not you. Damage must be reported within 7 days, so by 1
October.
> Please write the claim. 14 pieces at 11,80.
< Sent: 14 of 60 glass teapots broken, €165.20, with Pavel's nine photos, and the wish for replacements rather than
money.
> hope they're nice about it

@ longjing-late 10-02 17:30
> 林女士又写信了：「因为国庆节放假，海关清关要推迟，龙井大概10月20日才到。非常抱歉！」
< She says that because of the National Day holiday customs are late, and the Longjing will arrive around 20 October.
She is sorry.
> So I have none from when on?
$ sql {"query":"select sku, name, grams_in_stock, grams_sold_30d from stock where sku like 'LON%'"}
=   sku   |       name        | grams_in_stock | grams_sold_30d
|---------+-------------------+----------------+----------------
| LON-050 | Longjing 50 g     |           1450 |           3900
| LON-100 | Longjing 100 g    |           2300 |           4100
|(2 rows)
< At this pace the last bag goes around 16 October, so about four days without. A line on the page would do.
> 写「新茶在路上」, customers love that
< Done: "新茶在路上, new tea is on its way, back on 20 October", and people can leave their address.

@ advent 09-26 08:15
> Christmas!! I want an advent calendar this year: 24 teas, 5 g each. Realistic?
? 150 calendars × 24 × 5 g = 18 kg tea. Packing: 3600 bags. Print lead time.
< Yes, if you start now. For 150 calendars that is 3,600 little bags and 18 kg of tea. Printing the boxes takes three
weeks.
> 150 sounds right. Price?
< Tea €6.10, box €4.40, bags and two days of packing €7.50: €18 each. At 34 you keep enough for the leftovers.
> 34 it is. When must the artwork be at the printer's?
$ mail_search {"query":"printer box lead time advent calendar"}
={"hits":[
| {"from":"hello@boxprint.example", "date":"2026-09-22", "subject":"Re: 150 boxes", "snippet":"… artwork until 16
October, then delivery on 6 November. Minimum 100 …"}
|]}
< Artwork by 16 October, then the boxes come on 6 November, a week before you fly.
> So: 150 pieces, 34 euros, artwork by 16 Oct. Sale starts 1 November.
< Settled: 150 advent calendars at €34, artwork due 16 October, on sale from 1 November.
> who draws it though
< Mia draws foxes very well.
> 🦊 you're a genius

@ fox-box 10-09 16:05
> Mia drew the fox for the calendar box. It's asleep in a teapot. I can't.
< That sells itself. Scan it at 600 dpi, and leave 3 mm around the edge for the cutter.
> done, what else does the printer need
$ shell {"command":"./artwork/check box-fox.pdf"}
=page 420 × 340 mm, bleed 3 mm ok
|images: fox.tif 612 dpi ok, logo vector ok
|colours: 2 objects in RGB, converted to CMYK
|fonts embedded: 3 of 3
|ok to print
< The file passes; I turned two colours into print colours. It's at the printer's, a week early. The order number
there is BX-2290.
> Mia wants a share of the profits
< One euro per calendar would make her the richest fox painter of her school.
> 50 cents. She accepted 😂
< Written down: Mia gets 50 cents per calendar sold.

@ allergens 09-30 06:30
> A customer asked whether our Rooibos Vanilla has traces of nuts. I have no idea!
$ mail_search {"query":"rooibos vanilla specification allergens supplier"}
={"hits":[
| {"from":"quality@herbs.example", "date":"2025-12-04", "subject":"Specification RV-12", "snippet":"… may contain
traces of almond and hazelnut, filled on the same line …"}
|]}
< The supplier's sheet says: may contain traces of almond and hazelnut. That belongs on the page and on the bag.
> Oh god, we drink that at home. With Theo!!
< Please put it out of his reach today. I'm adding the line to the page, and the label for the next print run.
> Rooibos Vanilla is out of the house. Thank you for looking.
< Of course. I checked the other 21 teas as well; only that one names nuts.

@ opening-day 10-06 08:40
> I'm thinking of opening the warehouse for visitors one Saturday before Christmas. Tea tasting, 20 people.
< Lovely. Which Saturday? You're back from Japan on 28 November.
> 5 December, 14 to 18 h.
? Check insurance, kettle power: 3 kettles of 2.2 kW on one circuit of 16 A = 3.68 kW.
< 5 December it is. One practical thing: three kettles pull 6.6 kW, and the warehouse has one 16-ampere circuit. Even
two of them blow the fuse, so gas or thermos flasks.
> Thermos! And Pavel plays the guitar.
< Tasting day on 5 December, 14 to 18 h, 20 places, tea from thermos flasks because of the fuse, Pavel on the guitar.
> registration via the shop, free, but 5 € deposit
< I'll set it up as a product with 20 pieces in stock.

@ vat 10-08 06:15
> Tax letter from Austria?? I sell like ten parcels a month there
$ sql {"query":"select country, count(*), sum(total_cents)/100 eur from orders where extract(year from created_at) =
2026 and country <> 'DE' group by 1 order by 3 desc"}
= country | count |  eur
|---------+-------+-------
| AT      |   118 |  5022
| NL      |    77 |  3190
| DK      |    31 |  1405
| BE      |    22 |   960
|(4 rows)
< Ten a month to Austria, but all EU countries count together: €10,577 this year, and the limit for home VAT is
€10,000.
> So I crossed it. When?
< On 19 September, with the newsletter not even out. From then on the customer's country's VAT applies, declared
through the one-stop shop.
> Call Mrs Adler, got it. Can the shop do different rates?
< It can since this morning: AT 10%, NL 9%, DK 25%, BE 6% for tea. She should confirm the rates before I switch it on.
> I'll ask her on Monday the 12th.
< Reminder set. Until then I only log what would change.
`;
