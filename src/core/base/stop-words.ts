/** Stop words: words too common to distinguish one text from another. One base list, and what each use adds to it. */

const setOf = (...texts: readonly string[]): ReadonlySet<string> => new Set(texts.join(" ").split(/\s+/));

const functionWords = `a about after all also am an and any are as at be because been before being both but by can could did do
  does doing for from get gets getting got had has have having he her here hers him his how i if in into is it
  its just kind like many me more most much my no nor not of off on once one or other our out over own she
  should so some such than that the their them then there these they this those through to too under until up
  us very was we were what when where which while who why will with would you your`;

/** For queries. Only function words, since a query for "new" or "last time" means it; contractions as the index splits them. */
export const queryStopWords = setOf(
  functionWords,
  "aren couldn didn doesn don hadn hasn haven isn might mine must ours s shouldn t theirs wasn weren whom whose wouldn yours",
);

/** For choosing sentences and excerpts: everyday words too, in the languages whose cues are known. */
export const everydayWords = setOf(
  functionWords,
  `above again aren't back below between can't come couldn't didn't doesn't don't down each even every few
  further go goes going hasn't haven't he's here's i'd i'll i'm i've isn't it's itself know let let's look lot
  made make makes need now ok okay only please put really right said same say see she's something still sure
  take that's there's they're thing things think try two use used using want wasn't way we'd we'll we're we've
  well what's won't wouldn't yeah yes yet you'd you'll you're you've good great nice new time first last
  thanks thank aber als auch auf aus bei bin bis da das dass dem den der des die dies du ein eine einem einen
  einer er es für hab habe haben hat ich ihr im ist ja kann man mir mit nach nicht noch nur oder schon sehr
  sich sie sind um und uns vom von vor war wenn wie wir wird zu zum zur au aux avec ce ces cette dans de elle
  en est et il ils je la le les leur lui mais moi ne nous ou par pas pour qu que qui sa se ses son sont sur te
  tu un une vous y al con como del el ella era esta este está esto fue ha hay las lo los más muy nos o para
  pero por qué ser si sin su sus tiene una ya yo com dos e em eu foi mas na não nas os pela pelo são seu sua
  tem uma che di è gli ho nel non per più sono anche della een het ik met niet op van voor wat ze zijn а без
  бы был была было в вам вас во вот все вы где да для до его ее если есть еще же за и из или их к как ко когда
  ли мне мы на не него нет но ну о об он она они от по при с со так там то тоже тут ты у уже что это я`,
);
