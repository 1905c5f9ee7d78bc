/**
 * Cues by which a sentence is taken for a standing instruction, language by language: lasting rules, preferences,
 * allergies and the like, and their revocation. Each is a pattern that a sentence must match; what it matches is the
 * reason that people are shown. Chosen for few false alarms: a missed one can still be pinned by hand.
 */

import { once } from "../base/once.ts";

/** `asked`: also counts in a sentence that ends with a question mark. */
export interface Cue {
  readonly pattern: RegExp;
  readonly asked: boolean;
}

/** Words that may come before an imperative. */
const opener =
  "(?:(?:ok(?:ay)?|alright|and|also|so|but|then|please|pls|btw|by the way|note|rule|reminder|important|remember|hey|yes|no|but please)[,:!]? +){0,3}";
/** After "always" or "never" these make a description, not an order. */
const notOrdered =
  "(?!(?:\\w+(?:ing|ed)|been|be[ae]n|had|was|were|got|gotten|gone|seen|done|made|knew|known|thought|felt|happy|nice|fun|good|great|glad|" +
  "a|an|the|my|so|there|here|mind|too|again|before|ever|in|on|at|with|for|to|know|stops?|gets?|fails?|ends|wanted|did|does|is|are|has|have|" +
  "up|down|and|or|but|quite|really|very|more|less|that|this|it|worth|love|loved|enjoy|hope|say|heard|met|took|saw|forget|look|give|stop)\\b)";
const localWords = "(?:this|that|these|those|it|them|yet|now|here|the|today|tonight|tomorrow|anymore|too|so|if)";
/** Only in a rule that outlives the task at hand is nothing at hand named after the verb. */
const notLocal = `(?!.*\\b${localWords}\\b)`;
const notThis = "(?!.*\\b(?:this|that|it)\\b)";
const socialVerbs =
  "(?:worry|hesitate|forget|be|fear|give|know|think|feel|get|you|we|let|miss|mind|have|see|want|care|sweat|bother|stress|like|need|believe|panic|understand|make|try|go|work|start|look|tell|say|even|really|quite|just|stop|lose|take|expect|recall|remember|ask|waste|beat|overthink|underestimate|hold|sleep|rush|hurry|seem|mean|show|plan)";
const ownVerbs =
  "(?:use|bump|commit|push|deploy|merge|squash|rebase|run|test|write|name|tag|release|ship|review|format|lint|document|log|ask|" +
  "refund|reply|answer|send|store|pin|version|cherry-pick|branch|sign)";
/** What may come before other cues: polite words, the end of a clause, and of whom something is said. */
const polite = "(?:please |and |also |so |always )*";
const afterClause = "[,;:.–—-] *(?:and |so |but |also )?(?:please )?";
const afterMark = "(?:^|[.,;:] *)";
const person =
  "(?:I'?m|I am|(?:he|she|they|my \\w+|[A-Z]\\w+) (?:is|are)|\\w+'s) (?:also |very |severely |deathly |highly |a |strict |strictly )*";
const languages =
  "(?:english|german|french|spanish|italian|portuguese|dutch|polish|russian|chinese|mandarin|japanese|korean|arabic|hindi|turkish|swedish|danish|norwegian|finnish|czech|greek|hebrew|ukrainian|plain english)";
const diets =
  "(?:allergic|intolerant|vegan|vegetarian|pescatarian|diabetic|c(?:o)?eliac|lactose[- ]intolerant|gluten[- ]intolerant|colou?r-?blind|deaf|hard of hearing|dyslexic|teetotal|epileptic|asthmatic)";

const english = [
  // Orders with always and never.
  `^${opener}(?:always|never(?: ever)?) +${notOrdered}[a-z]+`,
  `${afterClause}(?:always|never ever) +${notOrdered}[a-z]+`,
  `\\b(?:please|you(?: should| must| have to| need to)|must|should|shall|make sure(?: you| to)?|be sure to|remember to|want you to|like you to) (?:always|never)(?! (?:have|happen|be(?:en)?|know|had))\\b`,
  `\\bwe (?:always|never) ${ownVerbs}\\b`,
  `\\b(?:is|are) (?:always|never) (?:${ownVerbs}e?d|refunded|allowed|ok(?:ay)?|acceptable)\\b`,
  // Prohibitions without an object at hand.
  `^${opener}(?:do not|don'?t|dont|do n't) (?:ever )?(?!${socialVerbs}\\b)[a-z]+ ${notLocal}`,
  "\\b(?:do not|don'?t|dont) (?:you )?ever\\b",
  // A change of the rules.
  `^${opener}(?:stop|quit) (?!(?:it|that|this|there|here|now)\\b)[a-z]+ing\\b${notThis}`,
  "\\bno longer (?:need|want|have) (?:you )?to\\b",
  "\\b(?:ignore|forget|scrap|drop) (?:my|the|that|your) (?:earlier|previous|old|last) (?:rule|instruction|preference|request)s?\\b",
];

const englishAsked = [
  "\\b(?:from now on|from here on|from this point on|for all future|in all future|in (?:every|all) (?:future )?(?:answer|repl(?:y|ie)|response|message|commit)s?|until (?:i|further) (?:say|tell|notice)|unless i (?:say|tell|ask|explicitly)|as a (?:general )?rule[,:]|by default[,:]? (?:use|answer|write|assume|keep)|every time (?:you|i ask)|whenever (?:you(?! (?:need|want|feel|like|can|have|get|are))|i ask))\\b",
  `${afterMark}(?:going|moving) forward[,:]`,
  "\\bin (?:the )?future,? (?:please|always|never|do not|don'?t|use|ask|write|keep)\\b",
  "\\bwithout (?:first )?(?:asking|checking with|telling|consulting)(?: me| us)?(?: first)?\\b(?!\\w)",
  "\\b(?:ask|check with|tell|warn) me (?:first|before)\\b",
  // Preferences.
  "\\bI(?:'d| would|'ve always| really| generally| usually| strongly| definitely| also)* prefer(?!red)\\b(?! not to say)",
  "\\bmy (?:strong |general |personal )?preference (?:is|for)\\b",
  "\\bI(?:'d| would) rather (?:you|we|have|not)\\b",
  "\\bI (?:really )?(?:like|love) (?:it )?when you\\b|\\bI (?:really )?(?:hate|don'?t like|dislike) (?:it )?when (?:you|people|code|tests|commits)\\b",
  "\\bI (?:don'?t|do not) want (?:you to|any)\\b",
  "\\bI want you to (?:always|never|remember|use|keep|call|answer|ask)\\b",
  "\\bI only (?:want|use|eat|drink|work|fly|take|accept)\\b",
  // How to answer, write and address.
  `\\b(?:answer|reply|respond|write|speak|talk|chat|communicate)(?: to me| me| everything| back)?(?: only| always)? in (?:only )?${languages}\\b(?! class)`,
  "\\bkeep (?:your |all |the )?(?:answers?|repl(?:y|ies)|responses?|commits?|commit messages?|messages?|explanations?|functions?|files|PRs?|pull requests) (?:very |as )?(?:short|brief|small|concise|tiny|to the point|simple|focused)\\b",
  `^${polite}use (?:tabs|spaces|(?:two|four|2|4) spaces|single quotes|double quotes|semicolons|no semicolons|metric|celsius|fahrenheit|kilomet(?:re|er)s|miles|(?:british|american|plain|simple) (?:english|spelling)|bullet points|emojis?|conventional commits|the 24|24-?hour|iso dates|snake_case|camelCase)\\b`,
  `^${polite}no (?:emojis?|em[- ]?dashes|comments|semicolons|bullet points|markdown|jargon|small talk|apologies|exclamation marks|console ?logs?|default exports|any)\\b(?! (?:on|from|yet|left|in the))`,
  "\\b(?:call me|address me as|refer to me as) (?!(?:back|at|when|if|later|tomorrow|tonight|today|on|in|a|an|the|crazy|old|anytime|any|and|about|for|now|before|after|biased|again|paranoid|stupid|naive)\\b)[A-Za-z]",
  "\\bmy pronouns are\\b",
  // Facts that every later answer must respect.
  `\\b${person}${diets}\\b`,
  "\\b(?:I|he|she|they|we|my \\w+) (?:can'?t|cannot|can not|don'?t|do not|doesn'?t|must not|mustn'?t|never) (?:eat|drink|tolerate|have any)\\b",
  "\\bmust not (?:eat|drink|touch|get|be given)\\b",
  "\\b(?:have|has|with) an? (?:\\w+ )?allergy\\b|\\ballergy to\\b",
  // To be kept in mind.
  `^${polite}(?:remember|keep in mind|bear in mind|note)(?:[:,]| that|:? that)? (?:I|we|my|our|you|always|never)\\b(?!'| (?:don't have|saw|told|said|mentioned|were|talked|asked|have|had))`,
];

const notSaid = "(?!(?:ich|er|sie|es|wir|das|du|man|der|die|ihr|was|wie|wo|da|so|und|aber|hier|dies\\w*|mein\\w*) )";

const german = [
  `^(?:bitte[,:]? |und |auch |ok[,:]? |also )*(?:immer|nie(?:mals)?|stets)\\b(?! (?:wieder|noch|mehr|mal|zu|so|gut|schlecht|im|am|das|der|die))(?=.*\\p{L}+en\\b)`,
  `^(?:bitte[,:]? |und |auch |ok[,:]? )*${notSaid}\\p{L}+(?:e|t|en Sie)?(?: (?:mir|mich|uns|bitte|sie|in|auf|den|die|das|mit|prod\\w*|\\p{L}+)){0,4} (?:immer|nie|niemals|stets|ausschließlich)\\b`,
  "\\b(?:ab jetzt|von nun an|ab sofort|künftig|in Zukunft|von jetzt an|grundsätzlich|bis auf [Ww]eiteres)\\b",
  "\\b(?:antworte|antworten Sie|schreib|schreibe|sprich|rede)\\b.{0,20}\\b(?:auf|nur) (?:auf )?(?:Deutsch|Englisch|Französisch|Spanisch|Italienisch|Chinesisch|Japanisch)\\b",
  "\\b(?:ich bevorzuge|mir (?:ist|wäre|sind) .{0,40}lieber|ich (?:mag|will|möchte) (?:es )?(?:nicht|keine?n?)|ich hätte (?:lieber|gerne? immer))\\b",
  "\\b(?:ich|er|sie|wir|mein\\w* \\p{L}+) (?:bin|ist|sind|reagiere|reagiert|vertrage|verträgt|esse|isst|essen|trinke|trinkt|darf)\\b.{0,30}\\b(?:allergisch|vegan|Vegetarier(?:in)?|vegetarisch|Veganer(?:in)?|Diabetiker(?:in)?|kein(?:e|en)?|nicht essen)\\b",
  "\\b(?:nenn(?:e|en Sie)? mich|sprich mich|duze mich|siez(?:e|en Sie) mich|merk(?:e)? dir|merken Sie sich|denk(?:e)? (?:immer )?daran)\\b",
  "\\bohne (?:mich )?(?:vorher |erst )?zu fragen\\b|\\bfrag(?:e)? (?:mich )?(?:immer|vorher|zuerst|erst)\\b|\\bohne (?:meine )?(?:Rückfrage|Zustimmung|Erlaubnis)\\b",
  "\\bhör(?:e)? auf,? .{0,60}\\bzu\\b|^(?:bitte )?(?:keine?n?|nicht) .{0,60}\\bmehr\\b",
];

const french = [
  "\\b(?:désormais|dorénavant|à partir de maintenant|à l['’]avenir|jusqu['’]à nouvel ordre)\\b",
  "^(?:s['’]il (?:te|vous) pla[iî]t,? |et |aussi )*(?:(?!je|tu|il|elle|on|nous|vous|ils|elles|c['’]est|ça|oui|non)\\p{L}+(?:-(?:moi|nous|les?|la))?) (?:moi )?toujours\\b",
  "^(?:s['’]il (?:te|vous) pla[iî]t,? |et |aussi )*(?:ne |n['’])\\p{L}+(?:-\\p{L}+)? (?:jamais|plus)\\b|^(?:toujours|jamais) \\p{L}+",
  "\\b(?:je préf[eè]re|j['’]aimerais mieux|je préférerais|ma préférence)\\b",
  "\\b(?:je suis|il est|elle est|mon \\p{L}+ est|ma \\p{L}+ est) (?:aussi |très )?(?:allergique|végétarien(?:ne)?|végane?|vegan|diabétique|intolérante?|c[oœ]eliaque)\\b|\\bje ne (?:mange|bois|supporte) (?:pas|jamais)\\b",
  "\\b(?:appelle|appelez)-moi (?!quand|si|demain|plus)|\\b(?:tutoie|tutoyez|vouvoie|vouvoyez)-moi\\b",
  "\\b(?:réponds?|répondez|écris|écrivez|parle|parlez)(?:-moi)? (?:toujours |uniquement |seulement )?en (?:français|anglais|allemand|espagnol|italien|chinois|japonais)\\b",
  "\\bsans (?:me |m['’]|nous )?(?:demander|consulter|prévenir)\\b|\\bdemande(?:z)?-moi (?:d['’]abord|avant)\\b",
  "^(?:arrête|arrêtez|cesse|cessez) d(?:e |['’])|\\bsouviens-toi que|\\bretiens que|\\brappelle-toi que",
];

const spanish = [
  "\\b(?:a partir de ahora|de ahora en adelante|en adelante|de aquí en adelante|hasta nuevo aviso)\\b",
  "^(?:por favor,? |y |también )*(?:siempre|nunca|jamás) (?!he |has |ha |había|fue |es |está |me |te |se |lo )\\p{L}+",
  "^(?:por favor,? |y |también )*(?!yo|tú|él|ella|nosotros|casi)\\p{L}+(?:me|nos)? (?:siempre|nunca)\\b(?! (?:he|has|ha|había|fue|es|está))",
  "\\b(?:prefiero|preferiría|mi preferencia)\\b",
  "\\b(?:soy|es|mi \\p{L}+ es) (?:muy )?(?:alérgic[oa]|vegetarian[oa]|vegan[oa]|celíac[oa]|diabétic[oa]|intolerante)\\b|\\bno (?:como|bebo|puedo (?:comer|beber|tomar))\\b",
  "\\b(?:llámame|llámeme) (?!cuando|si|mañana|luego|más)|\\b(?:tutéame|trátame de)\\b",
  "\\b(?:responde|respóndeme|contesta|contéstame|escribe|escríbeme|habla|háblame)(?: siempre| solo| sólo)? en (?:español|inglés|alemán|francés|italiano|chino|japonés)\\b",
  "\\bsin (?:preguntar(?:me|nos)?|consultar(?:me|nos)?|avisar(?:me|nos)?)\\b|\\bpregúntame (?:antes|primero)\\b",
  "^(?:deja|deje) de \\p{L}+|^no vuelvas a\\b|^ya no \\p{L}+es\\b|\\b(?:recuerda|ten en cuenta) que\\b",
];

const chinese = [
  "(?:从现在开始|从现在起|从今以后|从今往后|今后|從現在開始|從現在起|從今以後|今後都|往后都)",
  "(?:^|[，,、])(?:请|請)?(?:以后|以後)(?:都|请|請|要|不要|别|別|不|用|你|只)",
  "(?:^|[，,])(?:请|請|你|你要|一定要)?(?:总是|總是|始终|始終|一律|永远|永遠|每次都|每次(?:回答|回复|提交))(?!在一起|是|爱|愛)",
  "(?:千万(?:别|不要)|千萬(?:別|不要)|永远不要|永遠不要|绝对不要|絕對不要|不要再|别再|別再|未经(?:我)?(?:同意|允许)|不(?:先)?问我就不要)",
  "(?:^|[，,])(?:请|請)?(?:记住|記住|牢记)(?!了吗|没)",
  "我(?:更)?(?:偏好|倾向于|傾向於|宁愿|寧願|更喜欢|更喜歡)",
  "我?(?:对|對).{1,12}(?:过敏|過敏)|我(?:不吃|不喝|不能吃|不能喝|吃素|是素食)",
  "(?:请|請)?(?:只|都|一律)?用(?:中文|英文|英语|英語|德语|德語|德文|法语|法語|日语|日語|日文|简体|繁体|繁體)(?:回答|回复|回覆|交流|写|寫|说|說)",
  "(?:叫我|称呼我(?:为)?|稱呼我)(?!去|来|來|起|做|回|给|快)",
];

const japanese = [
  "(?:今後|これからは|これから先|以後|今回以降|次回から|これ以降)(?!の予定|どう|について)",
  "(?:常に|必ず|絶対に|いつも|毎回|つねに).{0,60}(?:ください|下さい|こと[。！]?$|て(?:ね|よ)?[。！]?$|で(?:ね|お願い)|お願いします|しないで)",
  "(?:二度と|決して|絶対に).{0,40}(?:ない|ません|な[。！]?$)",
  ".{2,}(?:ないで(?:ください|ほしい|下さい|ね)|(?:は|を)(?:禁止|やめて(?:ください|ほしい|ね)?))",
  "(?:覚えておいて|覚えていて|忘れないで)",
  "(?:アレルギー(?:が|で|持ち)|ベジタリアン|ヴィーガン|菜食|(?:食べ|飲め|飲ま|食べら)(?:れない|れません|ません|ない)(?:ので|から|です|。|$))",
  "(?:方が|ほうが)(?:好き|好み|いい(?:です)?[。！]?$|良い(?:です)?[。！]?$)|を好みます",
  "(?:日本語|英語|ドイツ語|フランス語|中国語|敬語|タメ口)(?:だけ)?で(?:答え|返事|返信|回答|書い|話し|お願い)",
  "(?:と|って)呼んで(?:ください|ほしい|ね)?",
  "(?:聞|確認し|許可な|断ら)(?:かずに|てから|しに|ずに).{0,30}(?:ない|ください|こと)",
];

function cue(source: string, asked: boolean): Cue {
  return { pattern: new RegExp(source, "iu"), asked };
}

export const cues = once((): readonly Cue[] => [
  ...english.map((source) => cue(source, false)),
  ...[...englishAsked, ...german, ...french, ...spanish, ...chinese, ...japanese].map((source) => cue(source, true)),
]);

// ── A quick look ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** What comes before a cue's own words, and what depends on the rest of the sentence: left to the cue itself. */
const around = [opener, polite, person, afterClause, afterMark, notLocal, notThis];

/** Every English cue, at any word of a text. */
const anyEnglish = (): readonly string[] =>
  [...english, ...englishAsked].map((source) =>
    around.reduce((left, each) => left.replaceAll(each, ""), source).replace(/^\^|^\\b/, ""),
  );

/** Words, or their beginnings, of which each German, French and Spanish cue needs one. */
const anyOther =
  "(?:immer|nie|niemals|stets|jetzt|nun|sofort|weiteres|sprich|rede|lieber|nicht|keine?n?|toujours|jamais|plus|pas|moi|mieux|" +
  "maintenant|ordre|sans|adelante|ahora|aviso|siempre|nunca|como|bebo|puedo|sin|deja|deje|vuelvas|ya no|recuerda|cuenta|" +
  "ich (?:mag|will|möchte|hätte))\\b|" +
  "ausschließlich|zukunft|grundsätzlich|antworte|schreib|bevorzuge|allergi|vegan|vegetari|diabeti|nenne? mich|nennen sie mich|" +
  "duze mich|sieze|merke? |denke? |frag|rückfrage|zustimmung|erlaubnis|désormais|dorénavant|intoler|intolér|français|anglais|allemand|" +
  "espagnol|italien|chinois|japonais|arrête|cesse|souviens|retiens|rappelle|prefer|prefiero|español|inglés|alemán|francés|" +
  "italiano|chino|japonés|pregúnt|preguntar|merken|" +
  "jamás|künftig|hör|avenir|préf|végétarien|végan|diabét|c[oœ]e?liaque|alérgic|celíac|llám|tuté|trátame";

/** One pattern that is tried only where a word begins: this is looked for in every message that a user sends. */
const anyCue = once(() => new RegExp(`\\b(?:${[...anyEnglish(), anyOther].join("|")})`, "i"));

/** False if no cue can be in a text, which most texts show at once. */
export const mayHoldCue = (text: string): boolean =>
  anyCue().test(text.replaceAll("’", "'")) || /[\u2e80-\uffef]/.test(text);

/** Words of which a rule, or a lasting fact about the user, has one. Weaker than a cue: a model has named the message. */
export const mayStand = new RegExp(
  "\\b(?:always|never|nothing|nobody|only|must(?:n't)?|shouldn't|don't|do not|no longer|whenever|avoid|prefer|hates?|cannot|rule|" +
    "make sure|immer|nie|niemals|nur|kein\\w*|soll\\w*|muss|bitte|toujours|jamais|seulement|ne|doit|dois|siempre|nunca|solo|sólo|debe\\w*|" +
    "hay que|allerg\\w+|I(?:'m| am) (?:an?|not)|I (?:live|work)|[Ii]ch bin|je suis|soy)\\b|" +
    "不要|不能|别|別|必须|必須|总是|永远|只|请|我(?:是|不)|ください|ないで|必ず|常に|だけ|私は|僕は",
  "iu",
);
