/** What is cooked, baked and eaten, and who must not eat what. Notation: read.ts. */

export const kitchenArcs = `
@ sourdough 09-08 05:50
> My sourdough is flat as a plate. Again. What am I doing wrong?
< Tell me three things: how warm is the kitchen, how long does it rise, and how do you feed the starter?
> 27 degrees (summer…), 5 hours, and I feed 1:1:1 in the morning.
? Too warm and too long: overproofed. Stronger feeding 1:4:4 and shorter bulk.
< At 27 degrees five hours is too long: it rises, and falls again before the oven sees it. Three hours, and feed it
1:4:4 in the evening so that it is hungry in the morning.
> 1:4:4 meaning?
< One part starter, four parts flour, four parts water: 20 g, 80 g, 80 g.
> ok trying tomorrow. its name is Bruno btw
< Regards to Bruno.

@ sourdough-two 09-10 05:40
> BRUNO ROSE 🎉 three hours and the 1:4:4 did it!
< Congratulations to both of you! Open crumb?
> Like a sponge. Jonas ate half of it standing, with oat butter, since he can't have lactose.
< The highest praise. Write it on the jar: 1:4:4 in the evening, three hours at 27°.

@ jjigae 09-12 16:05
> Our neighbour Jiwoo gave me a jar of kimchi, two years old!! 김치찌개 해 먹으래. How?
< 잘 익은 김치가 찌개에는 최고예요! Do you want it with pork as she makes it, or without?
> Mia doesn't eat meat since the summer, so without. But it should taste of something.
? Mia vegetarian. Use shiitake + kombu broth, tofu, a spoon of gochugaru, kimchi juice.
< Then dried shiitake and a piece of kombu for the broth, 300 g kimchi fried in sesame oil first, two spoons of its
juice, firm tofu in the last five minutes. The frying makes the depth that pork would give.
> 지우가 물어봐: 설탕 조금 넣어도 돼?
< 네, 신 김치에는 설탕 반 작은술이 딱 좋아요.
~ 48
> It was SO good. Even Theo had rice with the red water.
< Then it's on the list: kimchi stew without meat, half a teaspoon of sugar against the sourness.

@ week-plan 09-20 17:35
> Let's make a meal plan for the week, I'm tired of deciding at 6 pm
< Whom and what do I plan around?
> Jonas no lactose, Mia vegetarian, Theo no hazelnuts, and I can't stand coriander, it tastes like soap to me. Fridays
pizza, that's law.
< Understood, coriander stays out, and Friday is law. Here is the week:
|Mon  lentil soup with smoked paprika, bread
|Tue  soba with mushrooms and spring onion
|Wed  oven vegetables, tahini, flatbread
|Thu  fried rice with egg and peas (choir night, ready in 20 min)
|Fri  pizza 🍕 (Jonas's with the oat cheese)
|Sat  kimchi stew
|Sun  pancakes, whatever time it is
> Wow. Can you make the shopping list too
$ notes_write {"note":"home/shopping.md", "text":"lentils 500 g, smoked paprika, soba 400 g, mushrooms 500 g, spring
onions 2, carrots 1 kg, squash, tahini, eggs 12, peas, tomatoes, oat cheese, tofu 2, kombu"}
={"saved":"home/shopping.md","bytes":214,"revision":17}
< It's in home/shopping.md, 14 things, sorted by the way through your supermarket: vegetables, cold, dry.
> this changes my life

@ dashi 09-26 16:45
> 母の出汁の分量、また忘れた。前に書いた？
$ notes_search {"query":"dashi 出汁 kombu"}
={"hits":[]}
< It isn't written down anywhere yet. Ask her, and I'll keep it this time.
> 聞いた！水1リットルに昆布10グラム、鰹節20グラム。昆布は一晩水につけるって。
< 書きました: 水1リットルに昆布10グラム、鰹節20グラム、昆布は一晩水出し。
> And for Mia without the fish flakes?
< Then 5 g more kombu and three dried shiitake overnight in the same water. Not the same, but a good soup.
> 🙏

@ birthday-cake 09-30 17:20
> For Wim's birthday I thought of two apple cakes, big tin. Without lactose, and one gluten-free.
< With oat cream and margarine that works well. For Gerda: ground almonds and buckwheat instead of flour, never
hazelnuts.
> Right, and a clean tin for hers. How much for 28 cm?
< For one 28 cm tin: 250 g margarine, 200 g sugar, 5 eggs, 300 g flour, 1.2 kg apples; 45 minutes at 180 degrees.
Gerda's: 150 g buckwheat and 150 g almonds instead of the flour.
> ok!

@ plum-cake 10-06 16:20
> Change of plan: Jonas says his father only ever wanted Zwetschgenkuchen, plum cake, never apple. Two of those then.
< Plum cake then, not apple. There are still late plums at the market until about Saturday.
> How many kilos
< 1.5 kg per tin, so 3 kg for two. Yeast dough for the one, Gerda's on buckwheat and almonds. Bake at 190 degrees for
40 minutes.
> And streusel. He wants streusel.
< Two plum cakes with streusel, 3 kg plums, 190 degrees for 40 minutes; Gerda's gluten-free in a clean tin with a flag
on it.
> 🚩

@ school-lunch 10-07 05:35
> Mia says lunch at school is "grey". She wants a bento like obachan makes.
< Let's make grey impossible: five colours per box. Rice, omelette, carrots, edamame, a plum. Ten minutes if the rice
is from the evening before.
> 卵焼きの作り方、甘いほう！
< 卵三個に砂糖大さじ一、醤油小さじ半、だし大さじ二。弱火で三回に分けて巻きます。
> Packed. She looked into the box three times before she was out of the door
< Obachan's school of lunch. Carrots cut as leaves tomorrow?
> 🍁🍁🍁
`;
