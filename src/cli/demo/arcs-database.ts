/** The shop's database moves from an old machine to a new one, and what comes before and after. Notation: read.ts. */

export const databaseArcs = `
@ why-move 09-08 17:40
> The server feels slow and I got a mail "disk almost full". What are my options, in plain words?
$ shell {"command":"df -h / ; free -h ; uptime"}
=Filesystem      Size  Used Avail Use% Mounted on
|/dev/vda1        40G   36G  2.9G  93% /
|               total        used        free      shared  buff/cache   available
|Mem:           3.8Gi       3.1Gi       121Mi        42Mi       612Mi       447Mi
|Swap:          2.0Gi       1.4Gi       612Mi
| 19:41:07 up 212 days,  load average: 2.81, 2.40, 2.22
$ shell {"command":"sudo du -xh --max-depth=2 /srv /var | sort -rh | head -14"}
=* sizes
< In plain words: wren is full (93% of the disk) and too small (it swaps). Three ways: delete old logs and pictures
and win a few months; a bigger disk on the same machine; or a new machine and, while we're at it, a proper database.
> What's improper about ours?
< The orders live in one SQLite file that the web server, the worker and the export all lock against each other. It
served you well for four years, but the waiting you feel is mostly that.
> Then properly. But I want to understand every step, it's my shop.
< Agreed: a new machine with PostgreSQL, small steps, and each one explained before it happens.
> Noor has to look over it as well.
< She will. I'll write the plan so that she can comment on it.

@ new-machine 09-11 18:10
> Noor says she'd take a machine in Helsinki, cheaper. Opinions?
$ web_search {"query":"small server 8 GB RAM NVMe Helsinki Falkenstein monthly price snapshot backups"}
=1. Cloud servers, shared vCPU: 4 vCPU, 8 GB, 80 GB NVMe, 20 TB traffic. Falkenstein, Nuremberg, Helsinki. From €13.60
|2. "Latency from northern Germany": Falkenstein 14–18 ms, Helsinki 31–38 ms, Nuremberg 17–20 ms (measured over a week)
|3. Forum: snapshots are billed per GB and month; automatic backups add 20% to the price of the server
|4. Status page: Helsinki had one network incident of 41 minutes in the last 12 months, Falkenstein none over 10 minutes
< Helsinki would add about 20 ms to each page for most of your customers, and save 80 cents a month. I'd stay closer.
> ok then Falkenstein.
< With backups it comes to €16.90 a month. It needs a name; the old one is called wren.
> Birds, yes. Let's call it heron. Long legs, stands in the water, catches things.
$ shell {"command":"./infra/create heron --type small-8 --location fsn --backups --ssh-key emi,noor"}
=creating server heron ......... done (38 s)
|ipv4 203.0.113.41   ipv6 2001:db8:41::1
|backups on, window 02-06 UTC
|firewall web-and-ssh attached
|installed: postgresql-18, nodejs, caddy, chrony (enabled)
< heron is up: 8 GB, Falkenstein, €16.90 a month with backups, PostgreSQL 18 installed. Nothing points to it yet.
> exciting 🐦

@ first-plan 09-12 09:05
> Can you write down the plan for the move? Short, for Noor.
< 1. Schema on heron. 2. Dry run with a copy of the data. 3. Fix what we find, dry run again. 4. The night: shop
read-only, copy, compare counts and sums, switch, watch. 5. wren stays untouched for a month as the way back.
> When is the night?
$ sql {"query":"select to_char(created_at,'Dy HH24') h, count(*) from orders where created_at > date('now','-60 day')
group by 1"}
=* hours 24 Sat
< Quietest are the hours after eleven at night. Saturday 26 September, 23:00 would leave the Sunday to recover.
> Take Saturday 26th at 23h for now.
$ calendar_add {"title":"Database move wren to heron","start":"2026-09-26T23:00","with":["noor@fogleaf.example"]}
={"id":"cal_5120","title":"Database move wren to heron","start":"2026-09-26T23:00+02:00","invited":1,"accepted":0}
< Planned, and Noor is invited.

@ cents 09-13 17:55
> Noor asks why the prices in the new schema are integers. She thinks numeric is more "correct".
? SQLite file stores floats. 19.99*3 = 59.97000000000001. Both numeric and bigint solve it; bigint is simpler in JS.
< Both would be right; today's floats are the wrong ones. I chose whole cents because JavaScript reads a numeric as
text and someone will add two of those one day: "19.99" + "4.90".
> Ha. That convinces me. She says fine if the column name says so.
< Settled then: all money as bigint in whole cents, columns end in _cents, because JavaScript would glue numerics
together as text.
$ shell {"command":"psql heron -f schema/010_orders.sql"}
=psql:010:1: NOTICE:  schema "shop" created
|psql:010:4: table customers created
|psql:010:18: table orders created (total_cents bigint not null check (total_cents >= 0))
|psql:010:31: table order_lines created (unit_cents bigint not null, discount_cents bigint not null default 0)
|psql:010:44: table captures created (amount_cents bigint not null)
|psql:010:52: table jobs created
|psql:010:58: table vouchers created
|COMMIT
< The schema is on heron, seven steps, no complaints.

@ export-lock 09-15 06:20
> The nightly export died again, Pavel has no packing list. Can you look?
? Twice in one week at the same minute: something else holds the file then. Backup?
$ read_log {"unit":"shop-export.service","lines":40}
=2026-09-15 02:10:00 shop-export: start, 31 orders since yesterday
|2026-09-15 02:10:02 shop-export: reading order lines
|2026-09-15 02:10:37 shop-export: ERR_LOCK_TIMEOUT waited 30000 ms for orders.db
|2026-09-15 02:10:37 shop-export: at Export.readLines (export/lines.js:88:15)
|2026-09-15 02:10:37 systemd: shop-export.service: main process exited, code=exited, status=75
$ shell {"command":"systemctl list-timers --all | head -12"}
=NEXT                         LEFT     LAST                         UNIT
|Wed 2026-09-16 02:00:00 UTC  19h left Tue 2026-09-15 02:00:03 UTC  orders-backup.timer
|Wed 2026-09-16 02:10:00 UTC  19h left Tue 2026-09-15 02:10:00 UTC  shop-export.timer
|Wed 2026-09-16 04:30:00 UTC  22h left Tue 2026-09-15 04:30:01 UTC  image-resize.timer
|Thu 2026-09-17 00:00:00 UTC  1 day    Mon 2026-09-14 00:00:00 UTC  logrotate.timer
< ERR_LOCK_TIMEOUT means it waited for the backup: that starts at 02:00, now takes 14 minutes, and holds orders.db
meanwhile. I moved the export to 03:10, well after it, and ran it once by hand; Pavel's list is in the usual place.
> He says thanks. So the database move would fix this for good?
< Yes. PostgreSQL backs up without locking anyone out.

@ dry-run 09-17 18:35
> ok dry run night! what do we do first 🍿
< I copy last night's backup of wren to heron and load it, table by table, with a stopwatch.
$ shell {"command":"./move/load --from wren-2026-09-17.db --to heron --dry-run"}
~ 47
=* copy 36
|warning: orders.note: 212 rows are not valid UTF-8, kept as bytes
|total 47 min 12 s
> it took AGES. 47 minutes without a shop is too much
? Where did time go? Index maintenance during load on order_lines.
$ shell {"command":"./move/report --slowest 6"}
= step                          | seconds
|-------------------------------+---------
| order_lines rows + 4 indexes  |    2204
| captures rows + 2 indexes     |     318
| orders rows + 5 indexes       |     171
| customers                     |      44
| everything else               |      95
|(5 rows)
< The first dry run took 47 minutes, and 37 of those are order_lines, because four indexes are updated with every row.
If we build the indexes after loading it should be a quarter of that. And 212 order notes are not UTF-8.
> what's in those?
< Umlauts from the old order form, before 2023: "GrÃ¼ÃŸe" instead of "Grüße". I can mend them on the way.
> Please do! Goodnight

@ dry-run-two 09-20 16:10
> Second try? The kids are at the lake with Jonas, I have two hours
$ shell {"command":"./move/load --from wren-2026-09-20.db --to heron --dry-run --indexes-last --mend-notes"}
~ 10
=* copy 42
|mended 212 notes (latin1 read as utf-8, twice for 9 of them)
|total 10 min 51 s
< Eleven minutes, down from 47. Indexes at the end did it. All 212 notes read properly again, nine had been garbled
twice.
> 🎉 and the numbers are the same on both sides?
$ shell {"command":"./move/compare wren heron"}
= table       |  wren  | heron  | equal
|-------------+--------+--------+-------
| customers   |  18204 |  18204 | yes
| orders      |  41127 |  41127 | yes
| order_lines | 183402 | 183402 | yes
| captures    |  42990 |  42990 | yes
| vouchers    |    913 |    912 | NO
|(5 rows)
? One voucher. Probably the same code in two spellings; the unique index is on lower(code).
< One voucher is missing: "welcome" and "WELCOME" both exist on wren, and the new table rightly holds codes without
regard to case. The small one was never used. I'd drop it.
> Drop it. So we're ready?
< Ready for the 26th.

@ move-date 09-23 06:35
> Wait. The newsletter goes out on the 25th. Moving the database the day after, with everyone ordering?
< You're right, that is the busiest weekend of the quarter. Let's look for another night.
> Tuesday? Noor can do very early, she gets up at four anyway because of the baby
$ sql {"query":"select to_char(created_at,'HH24:MI') t, count(*) from orders where extract(dow from created_at) = 2
group by 1"}
=* hours 12 Tue
< Tuesday between four and five has on average one order an hour. Then the move is Tuesday 29 September at 04:30 in
the morning, not Saturday, because of the newsletter weekend.
$ calendar_add {"title":"Database move (new date)", "start":"2026-09-29T04:30", "with":["noor@fogleaf.example"],
"replaces":"cal_5120"}
={"id":"cal_5178","replaced":"cal_5120","start":"2026-09-29T04:30+02:00","invited":1,"accepted":1}
< Calendar changed; Noor has accepted already. She must be awake 🙂
> of course she is

@ move-night 09-29 02:30
> I'm up. Coffee is up. Noor is on the phone. Go?
< Good morning. First the sign on the door: the shop goes read-only.
$ shell {"command":"./move/readonly on && ./deploy banner 'Back at 5. We are moving the tea.'"}
=readonly: on (checkout answers 503 with banner, catalogue stays up)
|worker: drained, 0 jobs running, 2 waiting
|deployed banner in 9 s
< Door closed at 04:31. Now the copy.
$ shell {"command":"./move/load --from wren:live --to heron --indexes-last --mend-notes"}
~ 8
=* copy 48
|mended 212 notes
|total 7 min 38 s
$ shell {"command":"./move/compare wren heron --sums"}
= table       |  wren  | heron  | sum wren    | sum heron   | equal
|-------------+--------+--------+-------------+-------------+-------
| customers   |  18377 |  18377 |             |             | yes
| orders      |  41382 |  41382 | 174013866   | 174013866   | yes
| order_lines | 184511 | 184511 | 181220415   | 181220415   | yes
| captures    |  43258 |  43258 | 172881040   | 172881040   | yes
| vouchers    |    914 |    914 |             |             | yes
|(5 rows)
< All 41,382 orders are on heron, and every sum agrees to the cent. Shall I switch?
> Noor nods (I can hear it). Switch!
$ shell {"command":"./move/switch heron && ./move/readonly off && ./smoke --checkout"}
~ 2
=config: DATABASE_URL now heron
|web restarted in 3 s, worker restarted in 2 s, 2 waiting jobs done
|smoke: home 200 (84 ms), tea page 200 (61 ms), cart 200, checkout 200, test payment ok, refund ok
|readonly: off
< Open again at 04:43. The checkout was closed for twelve minutes, the test payment went through and came back.
> I could cry. First real order?
$ sql {"query":"select order_no, city, total_cents from orders order by id desc limit 3"}
= order_no | city     | total_cents
|----------+----------+-------------
| FL-21160 | Leipzig  |        4380
| FL-21159 | Bremen   |        2950
| FL-21158 | Aachen   |        5125
|(3 rows)
< FL-21160 from Leipzig: the first order that was born on heron. Go back to bed.
> never. pancakes for everyone 🥞

@ slow-search 09-30 18:15
> The move was great BUT the search box on the site is slower than before. Type "ooolong" and wait.
$ sql {"query":"explain analyze select id, name from products where name ilike '%ooolong%' or description ilike
'%ooolong%'"}
= Seq Scan on products  (cost=0.00..412.18 rows=3 width=41) (actual time=312.440..618.902 rows=0 loops=1)
|   Filter: ((name ~~* '%ooolong%') OR (description ~~* '%ooolong%'))
|   Rows Removed by Filter: 2914
| Planning Time: 0.310 ms
| Execution Time: 619.020 ms
? No trigram index. pg_trgm would also forgive the typo.
< It reads all 2,914 rows each time. A trigram index answers that, and forgives a third o as well.
$ sql {"query":"create extension pg_trgm; create index products_search on products using gin ((name || ' ' ||
description) gin_trgm_ops)"}
=CREATE EXTENSION
|CREATE INDEX
|Time: 1804.221 ms (00:01.804)
< Search takes 9 ms now instead of 619, thanks to the trigram index products_search, and "ooolong" finds the oolongs.
> You typed that with a straight face
< Always.

@ restore-drill 10-04 08:30
> Noor says a backup you never restored isn't a backup. Can we try?
< She's right. I'd load last night's dump into an empty database and count.
$ shell {"command":"createdb drill && pg_restore -d drill -j 4 /backup/shop-2026-10-04.dump && ./move/compare heron
drill"}
~ 6
=pg_restore: connecting to database for restore
|pg_restore: processing data for table "shop.order_lines" ... 185190 rows
|pg_restore: processing data for table "shop.orders" ... 41560 rows
| all 14 tables equal
|real    6m04.110s
< It works: restored in six minutes, all 14 tables equal. I dropped the drill database again.
> How often should we do that
< Monthly is plenty.
> Then the first Sunday of every month, with coffee. Put it in my calendar.
$ calendar_add {"title":"Restore drill ☕","start":"2026-11-01T10:00","repeat":"first Sunday monthly"}
={"id":"cal_5240","title":"Restore drill ☕","next":["2026-11-01","2026-12-06","2027-01-03"]}
< Restore drill: every first Sunday of the month at ten, starting 1 November. 

@ wren-off 10-08 17:35
> When can I cancel the old server? I pay for both.
< wren has been idle for nine days. The plan said a month as the way back, and the contract runs to the end of a month
anyway.
> So 31 October?
< Yes: I'd cancel wren for 31 October, and take a last image of its disk before.
$ shell {"command":"./infra/cancel wren --on 2026-10-31 --image-first --dry-run"}
=would: image wren-final (36 GB, €0.43/month), keep 12 months
|would: cancel wren on 2026-10-31, last invoice €9.40
|nothing done (dry run)
> Do it. And I want a copy in my hands, not only in some cloud.
~ 20
< Copied: the last dump of wren, encrypted, is on the grey USB stick; it took 20 minutes.
> The stick goes in the tea tin on the office shelf, the one with the crane. The passphrase is in the blue folder.
< Noted: wren ends on 31 October, the final dump is on the grey USB stick in the crane tin, its passphrase in the blue
folder.
`;
