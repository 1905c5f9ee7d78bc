/** The household: calendar, school, a grandfather's birthday, a cat, a boiler, a car. Notation: read.ts. */

export const homeArcs = `
@ calendar 09-07 17:35
> Can you keep our family calendar from now on? It's me, Jonas, Mia and Theo, and everything is on paper at the
fridge.
< Gladly. Tell me what's on the fridge and I'll put it in; one colour each?
> Me green, Jonas blue, Mia orange, Theo yellow. Mia piano Tuesday 16:30, Theo football Wednesday 15 h, Jonas choir
Thursday evening, bins on Monday night.
$ calendar_add {"entries":[{"who":"Mia", "title":"Piano", "weekly":"Tue 16:30"}, {"who":"Theo", "title":"Football",
"weekly":"Wed 15:00"}, {"who":"Jonas", "title":"Choir", "weekly":"Thu 19:30"}, {"who":"all", "title":"Bins",
"weekly":"Mon 20:00"}]}
={"added":4,"ids":["cal_5001","cal_5002","cal_5003","cal_5004"],"conflicts":[]}
< Four series in, no collisions. Do you want a morning overview?
> Yes, but short. And never before 7, I'm not a person before 7.
< A short one each morning at seven, never earlier.
> Also for emergencies: Theo is allergic to hazelnuts, his adrenaline pen is in the red pouch by the door. And the
cat, Miso, needs her worm pill every three months.
< Noted, the red pouch by the door. Miso's next pill is on 1 December. 🐈

@ piano-moves 09-14 06:05
> Mia's piano teacher Mrs Sommer moves the lesson to Thursday 17:15, starting this week. The music school changed
rooms.
$ calendar_update {"id":"cal_5001","weekly":"Thu 17:15","from":"2026-09-17"}
={"id":"cal_5001", "title":"Piano", "weekly":"Thu 17:15", "next":"2026-09-17", "conflicts":[{"with":"Choir (Jonas)",
"gap":"2 h 15 min"}]}
< Moved: piano with Mrs Sommer is on Thursdays at 17:15 from this week. Jonas's choir starts two hours later, so he
can fetch her.
> He'll be thrilled
< I told him gently.

@ parents-evening 09-15 17:10
> School mail, I didn't read it, too long. Anything in there?
$ mail_search {"query":"from:school newer_than:2d","full":true}
=From: office@school.example
|Subject: Information 3a, autumn
|Dear parents, welcome back after the summer. The parents' evening of class 3a takes place on Thursday 24 September at
|19:30 in room 2.14. Please bring the signed media form. The bicycle training starts in October, helmets are required.
|Lunch is now ordered by app until 8 in the morning; the old paper vouchers are valid until the end of the month.
|For the autumn fair on 17 October we are looking for cakes and two people for the tombola.
|With kind regards
< Four things: parents' evening on Thursday 24 September at 19:30 in room 2.14, with the media form signed; lunch is
ordered by app until 8 h; helmets for October; cakes for the fair on 17 October.
> Thursday is choir. One of us has to stay with Theo.
< Then Jonas sings and you go, or Grandpa Wim sits with Theo. He is free on Thursdays.
> Ask Wim! He'll say yes if there is soup.
~ 4
< He said yes, and asked which soup.

@ wim-birthday 09-18 17:40
> Jonas's father turns 75 on Saturday 10 October. We're doing the party here. 22 people. Help.
< With pleasure. What does he love, what does he not eat, what may it cost?
> Loves old radios, plum cake, being the centre. Doesn't eat: nothing, he eats everything. But Jonas can't have
lactose, you know that, and aunt Gerda is coeliac.
? Constraints: Jonas lactose-free, Gerda gluten-free (coeliac), Theo hazelnut.
< So everything without lactose, one gluten-free corner for Gerda, and no hazelnuts because of Theo.
> For a present: his old valve radio from 1958 is in the attic, it's dead. Could someone repair it?
$ web_search {"query":"valve radio repair workshop Bremen Oldenburg"}
=1. Radio workshop in Oldenburg: valve sets before 1965, estimates free, waiting time about two weeks
|2. Club of radio amateurs, repair café every first Saturday
|3. Forum: capacitors from the fifties must be replaced before switching on, never "just try"
< There's a workshop in Oldenburg that does sets before 1965, waiting time two weeks. Don't plug it in before; old
capacitors burst.
> I'm driving there on Tuesday. Fingers crossed.

@ radio-repaired 10-05 16:30
> THE RADIO WORKS. 140 euros, new capacitors and one valve (an EL84). It sounds like honey.
< What a present! Ready well before Saturday.
> It's hidden at Pavel's place so Wim can't find it.
< Noted: the radio is repaired for €140 and hidden at Pavel's. Who brings it on Saturday?
> Pavel himself, at five, with a ribbon on it.

@ dentist 09-22 06:20
> Need to cancel Theo's dentist tomorrow, he has a cold 🤧
$ calendar_list {"query":"dentist","from":"2026-09-22"}
=cal_5090  Wed 2026-09-23 08:20  Dentist Theo, Dr. Yildiz, practice at the mill
|1 entry
~ 9
< I wrote to Dr. Yildiz's practice. They offer Tuesday 6 October 8:20 or Friday 9 October 14:00.
> Tuesday the 6th, 8:20.
< Theo's dentist is now on Tuesday 6 October at 8:20 with Dr. Yildiz.
> Thanks. And no sweets before, remind me lol

@ boiler 09-27 07:05
> Heating is out, the boiler shows E27 and the house is freezing
? E27 depends on the maker. Ask for model, typical: low water pressure.
< Brrr. What does the pressure gauge say, and what is the model?
> It's the Thermalux 24. Gauge at 0.6
$ web_search {"query":"Thermalux 24 boiler error E27 pressure 0.6 bar refill"}
=1. Thermalux 24 manual, p. 31: E27 = water pressure below 0.8 bar. Refill to 1.5 bar, cold, then press reset for 5 s
|2. Forum: E27 keeps coming back → expansion vessel or a leaking radiator valve
|3. Video: refilling a heating system, hose and tap in the cellar
< E27 is low water pressure: it wants more than 0.8 bar. Refill to 1.5 with the hose in the cellar while it is cold,
then hold reset for five seconds.
~ 22
> Jonas did it, it's humming! 1.5 now.
< Good. Look again in a week: if it has dropped below 1.2, the expansion vessel is the next suspect.
> If it happens again call Mr Kruse, he installed it: 0421 555 0134
< Saved: heating, Mr Kruse, 0421 555 0134.

@ boiler-again 10-04 06:45
> 1.1 bar after a week. You called it.
< Then it's likely the expansion vessel. Shall I ask Mr Kruse for a date?
$ mail_send {"to":"kruse@heating.example", "subject":"Thermalux 24: pressure drops from 1.5 to 1.1 bar in a week",
"body":"Error E27 on 27 September, refilled to 1.5."}
={"sent":true,"id":"m_88121","at":"2026-10-04T06:47:10Z"}
~ 10
> He called back within ten minutes, on a Sunday! He comes on Wednesday 14 October, morning, replaces the expansion
vessel, 280 euros.
< In the calendar: Mr Kruse, Wednesday 14 October in the morning, expansion vessel, €280. Until then refill when it's
below one.

@ car 09-28 18:20
> Car inspection is due in October, isn't it?
$ calendar_list {"query":"car","from":"2026-09-01","to":"2026-12-31"}
=cal_4410  Sat 2026-10-31  Car: inspection sticker expires (10/26)
|cal_4411  Sun 2026-10-25  Car: winter tyres?
|2 entries
< Yes, the sticker says 10/26. And the winter tyres are waiting.
> Make one appointment for both, before Japan of course, on a day I don't need the car. Not Tuesdays (parcels).
$ web_search {"query":"workshop inspection tyre change appointment October Bremen"}
=1. Workshop at the canal: Thu 15 Oct 08:00, Mon 19 Oct 10:30, Thu 22 Oct 08:00
|2. Inspection without appointment, test centre Hansastr., waiting time up to two hours
< Thursday 22 October at 8 at the workshop at the canal: inspection and tyres together.
> good
< Booked: Thursday 22 October, 8 h. They'll look at the brakes too.

@ vet 10-01 17:05
> Miso is scratching her ears all day, vet says mites. Drops: one per ear, every evening for 10 days, starting today.
< Poor Miso. That is until and including Saturday 10 October; reminder each evening at eight?
> Yes. And she must not go outside until it's over, she's furious.
$ calendar_add {"title":"Miso: ear drops, one per ear","daily":"20:00","from":"2026-10-01","until":"2026-10-10"}
={"id":"cal_5231","title":"Miso: ear drops, one per ear","occurrences":10,"last":"2026-10-10"}
< Set: ear drops for Miso, one per ear, ten evenings, last on 10 October. And no going out.
> She looks at me like I sold her
< Cats forgive for fish.

@ swimming 10-05 06:40
> Theo got a place in the swimming course!! After a year on the list
< Bravo Theo! When does it start?
> Wednesday 21 October, 15:45, ten times, at the Westbad. But Wednesday is football 15 h 😬
< Then football has to give way, or he swims on another day. Is there one?
> No. Football pauses until Christmas, he's fine with that, the coach as well.
$ calendar_update {"id":"cal_5002", "pause_from":"2026-10-21", "pause_until":"2026-12-23", "add":{"title":"Swimming
(Theo)", "weekly":"Wed 15:45", "from":"2026-10-21", "times":10}}
={"updated":"cal_5002","added":"cal_5244","skips":["2026-11-18","2026-11-25"],"reason":"family in Japan"}
< Theo swims on Wednesdays at 15:45 from 21 October at the Westbad, football pauses until Christmas. Two lessons fall
into Japan.
> They let us catch up. Great

@ present-list 10-10 06:20
> Big day! What's still to do for Wim's party?
$ notes_read {"note":"home/wim-75.md"}
=- [x] radio (at Pavel's, 17 h, ribbon)
|- [x] plum cake × 2, gluten-free one marked with a flag
|- [x] chairs from the neighbours (8)
|- [ ] soup: take it out of the fridge at 14 h
|- [ ] candles, the number 7 and the number 5
|- [ ] charge the camera
|- [ ] Miso to the bedroom before Gerda comes (cat hair)
< Four things: soup out at two, candles 7 and 5, the camera, and Miso into the bedroom before aunt Gerda comes.
> And somebody has to say something. I can't, I'd cry. Jonas can't either.
< Mia could read three lines. Shall I write something she can make her own?
> Oh yes
< "Grandpa Wim is 75. That's eight times as old as me, and a bit. He can fix everything except bedtime. Happy birthday."
> I'm crying already

@ thank-wim 10-11 08:10
> He cried when the radio came on. They were playing a waltz. I'll never forget that.
< What a moment. The last guests?
> Left at one. 22 people and not a crumb of plum cake left.
< Then write the recipe down before it becomes legend.
> Wim wants to come to the Japan trip now haha. Next time. Remind me in spring to plan a weekend in Hamburg with him,
model railway!
$ calendar_add {"title":"Plan a weekend in Hamburg with Wim (model railway)","date":"2027-03-15"}
={"id":"cal_5262","title":"Plan a weekend in Hamburg with Wim (model railway)","date":"2027-03-15"}
< Reminder for 15 March: plan a weekend in Hamburg with Wim, model railway.
`;
