/**
 * Recognises unmarked reasoning by its first words, in the languages that models reason in.
 * A summary reports what happened; a text that begins with the task, or with what the model will do, is reasoning. Every
 * pattern is anchored and bounded, since a broken model may write without end.
 */

export const greeting =
  /^(?:sure|certainly|of course|absolutely|okay|ok|alright|understood|got it|great)\b[ \t]*[.!,:;—-]+\s*/i;

export const is = "(?:['’]s| is)";
export const summarising = "(?:summar|condens|compact|memory|recap)";

const thinkingNouns =
  "(?:thought process|thinking(?: process)?|thoughts|reasoning(?: process)?|chain[- ]of[- ]thought)";
const given = "(?:conversation|segment|transcript|exchange)";
const task = `(?:${summarising}|(?:write|produce|extract|create|craft|draft|compose|generate|make|provide|give|capture|identify)\\b[^\\n.]{0,60}?(?:${summarising}|(?:this|the) ${given}|(?:key|main|important|relevant) (?:points|facts|details|information|decisions)))`;
/** `**Analyzing the Dialogue**`: a heading that some models put above each part of their reasoning. */
const heading =
  "(?:analy[sz]|assess|begin|clarif|compil|condens|consider|craft|defin|determin|distill|draft|evaluat|examin|explor|extract|focus|formulat|gather|identif|initiat|interpret|organiz|outlin|pars|pinpoint|plan|prioriti[sz]|process|read|refin|review|structur|summari[sz]|synthesi[sz]|think|understand)[a-z]{0,4}ing";

const openers: Readonly<Record<string, readonly string[]>> = {
  english: [
    `[#*_>\\s]*(?:my\\s+)?${thinkingNouns}[*_ \\t]*(?::|\\n)`,
    `here${is} (?:my|the) (?:\\w+ )?(?:${thinkingNouns}|analysis|approach)\\b`,
    `let(?: me|['’]s| us) (?:first |start by |begin by )?(?:think|analy|work |go through|look |consider|break |read)`,
    `(?:ok|okay|alright|hmm+|wait)\\b[ \\t]*[,.…!]`,
    `first,? (?:(?:i|we) (?:need|should|will)|i['’]ll|let me|let['’]s)`,
    `(?:so,? )?the user (?:wants|is asking|asks|asked|has asked) me to (?:write (?:a|the) )?${summarising}`,
    `(?:so,? )?(?:the|my) (?:task|job|goal)(?: here)? is to (?:write (?:a|the) )?summar`,
    `(?:so,? )?(?:i|we)(?:['’]ll| will| need to| should| have to| must|['’]m going to| am going to|['’]re going to| are going to| want to)(?: now| first| just)? ${task}`,
    `(?:i['’]m|i am|we['’]re|we are|i['’]ve been|i have been|we have been)(?: being)? (?:asked|given|told|tasked|supposed)\\b[^\\n.]{0,80}?(?:${summarising}|${given})`,
    `looking (?:at|through|over) (?:the|this)\\b[^\\n.]{0,60}?${given}[^\\n.]{0,40}?, (?:i|we|it|there)\\b`,
    `(?:\\*\\*|#{1,4} )${heading}\\b[^*\\n]{0,80}(?:\\*\\*)?[ \\t]*\\n\\s{0,4}(?:i['’]m|i am|i['’]ve|i (?:need|should|will|want|must|think|see)|i['’]ll|my (?:goal|focus|task|aim|next|current|initial)|let|okay|alright|the user)\\b`,
  ],
  chinese: [
    "(?:好的|好|嗯+|唔)[，,。！…]\\s{0,4}(?:这个|那么?|现在|首先)?[，,]?(?:用户|用戶|使用者|我|让我|讓我|这是|任务|需要)",
    "嗯+[，,。…]",
    "(?:首先|现在|現在)[，,]?(?:我(?:需要|应该|應該|要|得|会|會|来|來)|让我|讓我)",
    "(?:让我|讓我|我来|我來)(?:们|們)?(?:先|来|來|仔细|仔細)?(?:想|看|分析|思考|总结|總結|理解|梳理|回顾|回顧)",
    "我(?:们|們)?(?:现在|現在)?(?:需要|应该|應該|要|得|必须|必須)[^。\\n]{0,20}?(?:总结|總結|摘要|概括|提炼|提煉|归纳|歸納|压缩|壓縮)",
    "(?:用户|用戶|使用者)(?:希望|要求|想要|想让|想讓|需要|让|讓|请|請)我[^。\\n]{0,20}?(?:总结|總結|摘要|概括|提炼|归纳|压缩)",
  ],
  japanese: [
    "(?:うーん|ええと|えーと|えっと|さて|よし)[、。…，]",
    "(?:はい|では|それでは|わかりました|了解(?:です|しました)?|まず)[、。]?[^。\\n]{0,30}?(?:考えてみ|考えよう|考えましょう|見ていき|見てみ|読んでみ|整理してみ|分析してみ|要約する必要|要約しなければ)",
    "(?:私は|この会話を|会話を|内容を)[^。\\n]{0,20}?(?:要約|まとめ)(?:する必要|る必要|しなければ|なければ|すべき)",
    "ユーザー(?:は|が)私に[^。\\n]{0,30}?(?:要約|まとめ)",
  ],
  korean: [
    "(?:음+|흠+)[,.… ]",
    "(?:네|자|좋아요?|좋습니다|알겠습니다|그럼|먼저|우선)[,.! ][^.\\n]{0,30}?(?:생각해|살펴보|분석해|읽어 ?보|요약해야|사용자가 원하)",
    "(?:나는|내가|저는|제가|우리는|이 대화를|대화를)[^.\\n]{0,30}?요약(?:해야|을 작성해야|할 필요)",
    "사용자(?:가|는) (?:나에게|저에게|내게)[^.\\n]{0,30}?요약",
  ],
  german: [
    "(?:also|gut|nun|okay),? (?:der (?:nutzer|benutzer|anwender)|die nutzerin|ich (?:muss|soll|sollte|werde)|wir müssen|lass)\\b",
    "(?:zuerst|zunächst|als erstes) (?:muss|soll|sollte|werde|schaue) ich\\b",
    "ich (?:muss|soll|sollte|werde)\\b[^.\\n]{0,60}?(?:zusammenfass|zusammenfassung)",
    "der (?:nutzer|benutzer|anwender) (?:möchte|will|bittet|verlangt)\\b[^.\\n]{0,20}?(?:dass ich|mich)\\b",
    "(?:lass|lassen sie) (?:mich|uns)\\b[^.\\n]{0,40}?(?:nachdenken|überlegen|ansehen|anschauen|analysier|durchgehen|zusammenfass)",
  ],
  french: [
    "(?:bon|alors|voyons|hum+|euh|d['’]accord)[ \\t]*[,.…]",
    "(?:d['’]abord|premièrement|tout d['’]abord),? je (?:dois|vais|devrais)\\b",
    "(?:je (?:dois|vais|devrais)|il faut que je)\\b[^.\\n]{0,60}?(?:résum|synthèse|synthétis)",
    "l['’]utilisateur (?:me demande|veut que je|souhaite que je|demande que je)",
    "(?:laisse|laissez|laisser)[- ]moi (?:réfléchir|analyser|lire|voir)|réfléchissons",
  ],
  spanish: [
    "(?:bueno|vale|a ver|veamos|mmm+|de acuerdo)[ \\t]*[,.…]",
    "(?:primero|en primer lugar),? (?:necesito|debo|voy a|tengo que|debería)\\b",
    "(?:necesito|debo|tengo que|voy a|debería)\\b[^.\\n]{0,60}?(?:resum|síntesis|sintetiz)",
    "el usuario (?:me pide|me ha pedido|quiere que (?:yo )?(?:resum|haga|escrib)|desea que (?:yo )?(?:resum|haga|escrib))",
    "(?:déjame|permíteme|vamos a|déjeme) (?:pensar|analizar|ver|leer|revisar)\\b",
  ],
};

// Anchored once for all alternatives: anchored one by one, they would be tried at every position of a text.
const thinkingAloud = new RegExp(`^(?:${Object.values(openers).flat().join("|")})`, "iu");

export const thinksAloud = (text: string): boolean =>
  [text, text.replace(greeting, "")].some((start) => thinkingAloud.test(start));
