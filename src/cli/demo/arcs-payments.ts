/** The shop's money: charges, retries, refunds, invoices, shipping, prices. In the notation of read.ts. */

export const paymentArcs = `
@ charged-twice 09-07 06:12
> Morning! Three customers wrote over the weekend that they were charged twice. Can you find out what happened before
I answer them?
? A double capture usually means a retry after a timeout. The worker's log will tell.
< Good morning. I'll look at the payment worker's log from Saturday on.
$ shell {"command":"journalctl -u payment-worker --since 2026-09-05 --until 2026-09-07 | tail -40"}
=* worker 16 2026-09-05T20:58
|2026-09-05 21:40:08.771 WARN  worker[1] job 87731 capture order=FL-20388 amount=62.40 gateway answered 504 after 10 s
|2026-09-05 21:40:09.020 INFO  worker[1] job 87731 capture order=FL-20388 amount=62.40 EUR attempt=2 status=ok 842 ms
|* worker 9 2026-09-05T21:44
|2026-09-06 08:02:55.310 WARN  worker[0] job 87802 capture order=FL-20395 amount=74.10 gateway answered 504 after 10 s
|2026-09-06 08:02:55.561 INFO  worker[0] job 87802 capture order=FL-20395 amount=74.10 EUR attempt=2 status=ok 790 ms
|* worker 5 2026-09-06T08:05
< Found it. The gateway was slow, answered 504 after ten seconds, but had taken the money all the same. Our worker
then sent the capture a second time without an idempotency key, so the gateway saw a new payment.
> Ugh. So it is our bug and not theirs.
< Half and half, but the half we can fix is ours: the same key on every attempt of one order.
> How much do I owe people?
$ sql {"query":"select order_no, count(*), sum(amount_cents)/100.0 as eur from captures where at > '2026-09-05' group
by 1 having count(*) > 1"}
= order_no | count |  eur
|----------+-------+--------
| FL-20388 |     2 | 124.80
| FL-20395 |     2 | 148.20
| FL-20401 |     2 |  96.40
|(3 rows)
< Three orders, one charge too many on each: refund 62.40, 74.10 and 48.20, together €184.70.
> Do it please, and write them something kind. Not the "we apologise for any inconvenience" stuff.
$ http {"method":"POST", "url":"https://pay.example/v2/refunds/batch", "body":{"orders":["FL-20388", "FL-20395",
"FL-20401"], "reason":"duplicate"}}
={"batch":"rf_20260907_01", "accepted":3, "refunds":[{"order":"FL-20388", "cents":6240, "state":"pending"},
{"order":"FL-20395", "cents":7410, "state":"pending"}, {"order":"FL-20401", "cents":4820, "state":"pending"}],
"settles":"2026-09-09"}
< Refunded, it shows up by Wednesday. Draft: "Our till was impatient on the weekend and took your money twice. The
second payment is already on its way back, and your next parcel gets a little tin of Hojicha on us." Shall I send it
to all three?
> Lovely, send it.

@ retries 09-10 17:48
> Just off the phone with Noor about the payment worker. We agreed that it retries 7 times, then the job is parked and
she gets paged.
< Noted: 7 tries, then park and page Noor. With which pauses in between?
> She said "something growing, you know how". And the idempotency key is the order number plus the invoice version,
not a random one.
? Backoff 2^n seconds from 5 s: 5, 10, 20 … 320. Total about ten minutes.
< Then I double from five seconds: 5, 10, 20 and so on, a bit over ten minutes in all. Here is the change:
$ apply_patch {"path":"worker/capture.ts"}
=--- worker/capture.ts
|+++ worker/capture.ts
|@@ -18,9 +18,14 @@
|-  for (let attempt = 1; attempt <= 2; attempt++) {
|-    const answer = await gateway.capture(order.total);
|+  const key = order.number + "/" + order.invoiceVersion;
|+  for (let attempt = 1; attempt <= retriesMax; attempt++) {
|+    const answer = await gateway.capture(order.total, { idempotencyKey: key });
|     if (answer.ok) return answer;
|-    await pause(250);
|+    await pause(5_000 * 2 ** (attempt - 1));
|   }
|+  await park(job, "gateway gave up");
|+  await page("noor", order.number);
|1 file changed, 8 insertions(+), 3 deletions(-)
$ shell {"command":"npm test"}
=* tests 24
< All green, including a new test that sends the same capture twice and counts one payment. Deploy tonight?
> Tomorrow morning when I'm at the desk, please.
< Tomorrow at eight then. I left a note for myself.

@ clock 09-17 06:25
> The pay buttons all say "session expired" since last night?? Customers can't pay.
< That sounds like signatures being refused. One moment.
$ shell {"command":"journalctl -u payment-webhook --since yesterday -p warning | tail -8; timedatectl"}
=2026-09-16 22:51:10.114 ERROR webhook[0] rejected evt_7719: ERR_WEBHOOK_CLOCK_SKEW signature is 94 s in the future
|2026-09-16 22:51:44.902 ERROR webhook[0] rejected evt_7720: ERR_WEBHOOK_CLOCK_SKEW signature is 94 s in the future
|2026-09-17 05:58:02.337 ERROR webhook[0] rejected evt_7741: ERR_WEBHOOK_CLOCK_SKEW signature is 94 s in the future
|               Local time: Thu 2026-09-17 08:25:31 CEST
|System clock synchronized: no
|              NTP service: inactive
? The kernel update rebooted the machine at 22:40. chrony was not enabled, so the clock drifted.
< The cause of ERR_WEBHOOK_CLOCK_SKEW: wren's clock is 94 seconds behind, because chrony did not come back after the
reboot last night, and the gateway only tolerates 60.
> Can you fix it without a restart? There's money in the carts.
$ shell {"command":"sudo systemctl enable --now chrony && chronyc makestep && chronyc tracking | head -5"}
=200 OK
|Reference ID    : C0248F86 (ntp2.example)
|Stratum         : 3
|System time     : 0.000041 seconds fast of NTP time
|Last offset     : +93.871 seconds
< Clock is right again and chrony is enabled for the next reboot too. I replayed the 31 rejected events; 29 orders are
paid, two customers had given up and will get a payment link.
> Phew. Thank you!! ☕
< Gladly. I also added the clock offset to the morning check, red from 5 seconds on.

@ refund-rule 09-21 17:30
> A customer wants to return a single tin for 9,90. The return label costs me 4,95. Makes no sense?
< It doesn't. Many shops refund small things without asking for them back. Do you want a rule?
> Yes. Up to 20 euros we refund without return, once per customer and year. Above that the normal way.
< Rule written down: refunds up to €20 need no return, once per customer and year. What about broken things?
> Broken is always refunded, photo is enough, no matter how expensive.
$ notes_write {"note":"shop/returns.md", "text":"Refund without return up to EUR 20, once per customer and year.
Broken: always, photo is enough."}
={"saved":"shop/returns.md","bytes":412,"revision":3}
< Saved in shop/returns.md, and I answered the tin customer with it.
> perfect

@ retries-again 09-22 18:05
> Noor got paged at 3 am for a 12 euro order. She is… not amused.
< Understandable. Seven tries within ten minutes is hardly patient, either; the gateway was in maintenance for forty.
> Right. New agreement with her: only 5 retries but spread over half an hour, then parked. And she is paged only
between 7 and 22 h, at night it's just a mail to both of us.
< So the payment worker now retries 5 times over 30 minutes, then parks the job; Noor is paged from 7 to 22 h only,
and at night both of you get a mail. That replaces the seven.
> Exactly. Forget the seven.
$ apply_patch {"path":"worker/retry.ts"}
=--- worker/retry.ts
|+++ worker/retry.ts
|@@ -1,4 +1,8 @@
|-export const retriesMax = 7;
|-export const pauseMs = (attempt) => 5_000 * 2 ** (attempt - 1);
|+export const retriesMax = 5;
|+// 1, 2, 4, 8, 15 minutes: half an hour in all, longer than the gateway's usual maintenance.
|+export const pauseMs = (attempt) => [60, 120, 240, 480, 900][attempt - 1] * 1_000;
|+export const isPagingTime = (hour) => hour >= 7 && hour < 22;
|1 file changed, 6 insertions(+), 2 deletions(-)
$ shell {"command":"npm test && ./deploy worker"}
=* tests 18
|deployed worker 2026.09.22-2 to wren in 14 s
< Deployed. The runbook says the same now.

@ queue-alarm 09-28 06:40
> How would I notice if the worker silently stops? I mean before customers do.
? They only have an alarm on errors. A stopped worker makes none. Alarm on age of the queue.
< Today you wouldn't: there is an alarm on errors, and a worker that stands still makes none. I'd watch the age of the
queue.
> ok what number
$ sql {"query":"select date_trunc('day', created_at) d, max(started_at - created_at) wait, count(*) from jobs where
created_at > now() - interval '14 days' group by 1 order by 1"}
=* waits 14 2026-09-14
< On ordinary days nothing waits longer than four minutes. I suggest: alarm when more than 25 jobs are older than 10
minutes.
> Good, take that. To my phone, not mail.
~ 12
< Set: over 25 jobs older than ten minutes rings your phone. I stopped the worker on staging to try it; it rang after
eleven.

@ invoices 10-01 09:15
> Mrs Adler (accountant) called. Invoice numbers have holes and the tax office doesn't like holes.
< They come from a database sequence, and a sequence loses a number whenever a transaction is rolled back. Holes are
normal there, but not allowed here.
> She wants them gapless, starting at FL-2026-07001 from today on.
< Then a counter row that is locked in the same transaction as the invoice: gapless, starting with FL-2026-07001
today. Slower by a millisecond, which nobody will feel.
$ sql {"query":"select max(invoice_no), count(*), max(n) - min(n) + 1 - count(*) as holes from invoices where year =
2026"}
=     max      | count | holes
|--------------+-------+-------
| FL-2026-6874 |  6791 |    83
|(1 row)
> 83 holes, oh dear. Does she need a list?
< A list with a reason for each, yes: 79 rolled back checkouts, 4 test orders. I put it into a sheet and mailed it to
her.
> You're the best

@ fees 10-06 17:22
> Letter from the payment gateway: card fee goes from 1,4 % to 1,9 % on 1 November 😠
$ sql {"query":"select sum(amount_cents)/100 as eur from captures where method = 'card' and at > now() - interval '30
days'"}
=   eur
|---------
| 18342.10
|(1 row)
< On €18,342 of cards a month that is about €92 more. Changing the gateway before Christmas is a risk for less than
that.
> My thought too. We stay with them until January and then compare, not before.
< Decision noted: stay with the gateway through Christmas despite 1.9%, compare offers in January. Reminder set for 11
January.
> 👍

@ shipping 09-15 10:40
> I want free shipping from 45 euros on. Is that stupid?
? Look at basket sizes around the limit.
$ sql {"query":"select width_bucket(total_cents, 0, 10000, 10) b, count(*), avg(shipping_cents) from orders where
created_at > now() - interval '90 days' group by 1 order by 1"}
= b  | count |   avg
|----+-------+--------
|  1 |   212 | 490.00
|  2 |   548 | 490.00
|  3 |   731 | 490.00
|  4 |   689 | 490.00
|  5 |   402 | 482.10
|  6 |   251 | 455.30
|(6 rows)
< Not stupid. Most baskets end between 20 and 40 euros, so 45 is a little out of reach for many; people stretch about
20%.
> So lower?
< At 39 a third of all baskets is within reach of one more tea. You'd pay about €310 a month and win an estimated
€640.
> ok then 39, start with the newsletter.
< Free shipping from €39, live with the newsletter. And Switzerland?
> No Switzerland for now, the customs forms eat Pavel's whole morning.
< Switched off for Switzerland, with a friendly line in the checkout.

@ rounding 09-19 08:20
> order FL-20733: total 20,00 but the customer says it should be 19,98. Two vouchers.
$ shell {"command":"npm test"}
=* tests 9
|✖ two percentage vouchers on one line (2.7 ms)
|  AssertionError: expected 1998, got 2000
|      at cart/vouchers.test.ts:61:12
|9 passing, 1 failing
< She is right. Each voucher is rounded before they are added; two times half a cent makes two cents. I round once, at
the end.
> How many people lost cents?
$ sql {"query":"select count(*), sum(diff_cents) from recomputed_totals where diff_cents <> 0"}
= count | sum
|-------+------
|    47 |  71
|(1 row)
< 47 orders, 71 cents in all. I wouldn't write to anyone, but I'd fix it today.
> Fix it. And let's give that lady a voucher, she did the math!
< Fixed, and FL-20733 gets 5 euros with a thank-you for the arithmetic.
`;
