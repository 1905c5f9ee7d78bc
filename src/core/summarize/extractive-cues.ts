/**
 * Lists cue words of decisions, duties, errors, small talk and the like, in many languages.
 * Languages without spaces, and those with many endings, get patterns that match anywhere in a text.
 */

const splitWords = (...texts: readonly string[]): readonly string[] => texts.join(" ").split(/\s+/);
const anywhere = (...texts: readonly string[]): RegExp => new RegExp(splitWords(...texts).join("|"), "u");
const phrases = (...texts: readonly string[]): RegExp =>
  new RegExp(`\\b(?:${texts.join("|")})(?![\\p{L}\\p{N}=])`, "iu");
const beginning = (spaced: readonly string[], unspaced: string): RegExp =>
  new RegExp(`^(?:(?:${spaced.join("|")})(?![\\p{L}\\p{N}])|${unspaced})`, "iu");

/**
 * decision: agreed; duty: must happen, perhaps by a date; rule: applies always, or is preferred; change: replaces
 * something earlier; trouble: went wrong; outcome: came of it; fact: about the speaker.
 */
export const cueKinds = ["decision", "duty", "rule", "change", "trouble", "outcome", "fact"] as const;
export type CueKind = (typeof cueKinds)[number];

export const cueWords: Readonly<Record<CueKind, readonly string[]>> = {
  decision: splitWords(
    "decide decided decides decision decisions agreed agree agreement approved approve chose chosen choose settled",
    "conclusion concluded verdict confirmed picked selected final finalised finalized resolved signed",
    "beschlossen beschluss entschieden entscheidung vereinbart abgemacht genehmigt einigen geeinigt festgelegt",
    "décidé décidée décidons décision convenu validé choisi retenu décident",
    "decidido decidimos decidí decisión acordado acordamos aprobado elegido confirmado",
    "decidiu decisão combinado combinamos aprovado escolhido deciso decisione concordato approvato scelto",
    "besloten besluit afgesproken goedgekeurd gekozen",
    "решили решено решил решила решение договорились согласовано утверждено утвердили выбрали",
    "karar kararlaştırdık zdecydowaliśmy uzgodniono decyzja",
  ),
  duty: splitWords(
    "must deadline due shall promise promised commit committed owe owes blocker blocked todo required requires",
    "schedule scheduled appointment booked reserved reminder expires expire launch release ship ships",
    "muss müssen frist termin bis versprochen gebucht fällig abgabe spätestens",
    "doit devons échéance délai promis réservé rendez-vous avant obligatoire",
    "debe debemos plazo vence prometido reservado cita entrega límite",
    "deve prazo reunião scadenza prenotato appuntamento consegna",
    "moet deadline afspraak uiterlijk",
    "должны должен нужно надо срок дедлайн обещал обещали встреча",
  ),
  rule: splitWords(
    "always never prefer prefers preference remember important note rule policy allergic favorite favourite avoid",
    "password only except limit budget requirement constraint convention hate hates",
    "immer nie niemals bevorzuge wichtig merke regel allergisch budget",
    "toujours jamais préfère important souviens règle allergique",
    "siempre nunca prefiero importante recuerda regla alérgico alérgica presupuesto",
    "sempre mai preferisco importante ricorda prefiro lembre orçamento",
    "altijd nooit belangrijk voorkeur",
    "всегда никогда важно помни предпочитаю правило",
  ),
  change: splitWords(
    "actually instead correction wrong mistake changed change moved moves renamed replaced replaces replacing switch",
    "switched cancelled canceled cancel postponed rescheduled reverted revert rolled superseded deprecated removed",
    "rather anymore longer update updated pushed",
    "doch stattdessen eigentlich korrektur falsch geändert verschoben ersetzt abgesagt umbenannt",
    "finalement plutôt correction faux changé reporté remplacé annulé",
    "realmente corrección equivocado cambiado cambio aplazado reemplazado cancelado",
    "aliás correção errado mudou adiado substituído invece correzione sbagliato cambiato spostato annullato",
    "eigenlijk gewijzigd verplaatst вместо исправление ошибся изменили перенесли отменили заменили",
  ),
  trouble: splitWords(
    "error errors failed fails failing failure failures exception fatal panic panicked crash crashed crashes broken",
    "bug denied refused timeout rejected invalid missing unable cannot corrupt deadlock leak outage regression",
    "traceback segfault oom abort aborted conflict unauthorized forbidden unreachable exited",
    "fehler fehlgeschlagen kaputt absturz abgestürzt ausfall",
    "erreur échec échoué panne planté fallo falló erro falhou errore fallito fout mislukt",
    "ошибка ошибки упал сломалось сбой",
  ),
  outcome: splitWords(
    "fixed fix solved cause caused because reason turned works worked done finished completed merged deployed",
    "released passed passing found shipped migrated result results total measured faster slower reduced",
    "saved created",
    "behoben gelöst ursache weil grund fertig erledigt funktioniert",
    "corrigé résolu cause parce raison terminé fonctionne",
    "arreglado resuelto causa porque razón terminado funciona resolvido risolto perché finito",
    "opgelost omdat oorzaak исправлено решено причина потому готово работает",
  ),
  fact: splitWords(
    "my our mine name named called born live lives birthday wife husband son daughter mother father mom dad sister",
    "brother partner friend boss address phone email salary job mein meine unser unsere mon ma mes notre nuestra",
    "nuestro mi mis meu minha nosso mio mia nostro мой моя мои наш наша",
  ),
};

/** The same for scripts without spaces, and for languages with too many word forms to list. */
export const cuePatterns: Readonly<Record<CueKind, RegExp>> = {
  decision: anywhere(
    "决定 決定 決め(?:た|まし) に(?:します|しました|しよう) 决议 決まり 決まった 敲定 选定 選定 同意 确定 確定 合意",
    "採用 采用 결정 합의 확정 정했 ตกลง ตัดสินใจ قرر اتفق निर्णय तय",
  ),
  duty: anywhere(
    "必须 必須 截止 期限 締め?切 までに 之前 务必 預約 预约 予約 予定 承诺 納期 需要在 마감 기한 까지 해야 예약 약속",
    "ภายใน กำหนด ต้อง يجب موعد ज़रूरी",
  ),
  rule: anywhere(
    "总是 總是 必ず 从不 絶対 千万 不要 喜欢 偏好 好き 苦手 记住 記得 覚えて 重要 注意 アレルギー 过敏 ルール 規則 规则",
    "预算 予算 항상 절대 중요 선호 기억 알레르기 예산 ห้าม สำคัญ دائما مهم हमेशा महत्वपूर्ण",
  ),
  change: anywhere(
    "改为 改成 改用 改到 其实 其實 更正 不再 取消 推迟 やっぱり 実は 変更 延期 訂正 代わりに ではなく じゃなく 修正",
    "변경 대신 취소 사실 연기 เปลี่ยน ยกเลิก بدلا ألغي बदल",
  ),
  trouble: anywhere(
    "错误 錯誤 失败 失敗 报错 异常 崩溃 エラー 障害 例外 落ち(?:た|まし) 不具合 오류 실패 에러 장애",
    "ล้มเหลว ผิดพลาด خطأ فشل त्रुटि",
  ),
  outcome: anywhere(
    "因为 原因 所以 已修复 修复了 解决 完成 上线 直りました 直った 解決 完了 ため 終わ(?:った|りま) 원인 해결 완료 때문",
    "เสร็จ เพราะ بسبب तैयार कारण",
  ),
  fact: anywhere("我的 我家 我们的 私の うちの 母 父 妻 夫 娘 息子 誕生日 生日 名前 名字 우리 생일 이름 ของผม ของฉัน"),
};

/** Cues of more than one word. */
export const cuePhrases: Partial<Readonly<Record<CueKind, RegExp>>> = {
  decision: phrases(
    "go(?:ing)? with|let'?s (?:use|do|go|keep|make|take|call)|sign(?:ed)? off",
    "we(?:'ll| will) (?:use|keep|go|take|do|have|start|stop|ship)",
    "wir nehmen|on part sur|vamos con|nos quedamos",
  ),
  duty: phrases(
    "by (?:mon|tues|wednes|thurs|fri|satur|sun)day|by (?:the )?(?:end|next|tomorrow)|don'?t forget",
    "(?:have|has|need|needs) to|I(?:'ll| will) (?:send|bring|write|call|pay|deliver|review|finish)",
  ),
  rule: phrases("make sure|do not|don'?t (?:ever|use|touch|send|change)|at most|at least|no more than"),
  change: phrases(
    "no longer|not any ?more|not .{1,40} but|I meant|scratch that|on second thought|turns out|used to",
    "push(?:ed)? (?:[^ ]+ ){1,3}to|nicht mehr|ya no|non più|ne .{1,30} plus",
  ),
};

/** Polite or introductory phrases. */
export const smallTalk = beginning(
  [
    "sure|of course|certainly|absolutely|great|perfect|thanks|thank you|you'?re (?:very )?welcome|sounds good",
    "no problem|happy to|glad|got it|understood|hi|hello|hey|wow|awesome|nice|cool|haha|lol|let me know|feel free",
    "good (?:morning|luck|to|question|point|idea|night)|hope|i hope|have a|take care|bye|see you|any(?:thing| other)",
    "is there anything|would you like|shall i|do you want me|here(?:'s| is| are)|below",
    "gern|gerne|danke|bitte|klar|super|merci|bien sûr|gracias|claro|de nada|obrigad[oa]|grazie|prego",
    "спасибо|конечно|привет|네|감사합니다|안녕하세요|물론",
  ],
  "好的|谢谢|没问题|不客气|你好|当然|了解|ありがとう|承知|わかりました|どういたしまして|もちろん|こんにちは",
);

/** An assistant announcing its next step: worthless once that is done. */
export const narration = beginning(
  [
    "(?:(?:ok(?:ay)?|now|first|next|then|so|alright|good|great|perfect)[,.!:]? )?(?:let me|let us|let's|i'?ll now)",
    "(?:now |first |next |so )?i(?:'ll| will|'m going to| need to| should) (?:now |first |also |just )?" +
      "(?:check|look|read|search|start|run|try|see|find|open|examine|explore|update|add|create|fix|verify|test)",
    "(?:checking|looking|reading|searching) (?:at|for|the|into|through)",
    "lass mich|ich (?:schaue|prüfe)|je vais|voy a|vou",
  ],
  "让我|我来|我先|まず|では、|確認します|調べます|見てみます|확인해",
);

/** A short answer that needs its question. */
export const assent = beginning(
  [
    "yes|yep|yeah|yup|no|nope|ok|okay|sure|agreed|exactly|correct|right|done|go ahead|do (?:it|that|both)|please do",
    "sounds good|perfect|both|neither|the (?:first|second|third|last|former|latter|other)|option",
    "ja|nein|doch|oui|non|sí|si|sim|não|да|нет|네|예|아니|아니요|그래|좋아|좋아요",
  ],
  "是|好|对|對|可以|行|不|嗯|はい|いいえ|うん|そう|お願い|それで|後者|前者",
);

/** A line of a stack trace. */
export const frame = /^(?:at .+(?::\d+:\d+|\(.+:\d+)\)?$|File ".+", line \d|\.{3} \d+ more|from .+:\d+:in )/;
/** A report of an error in whole sentences, and not a text about errors. */
export const errorLine =
  /(?:error|exception|fatal|fail(?:ed|ure)?|panic|warn(?:ing)?)\b(?: \w{1,20})?[:\]]|^\W{0,9}(?:error|fatal|failed)\b/i;

/** Kinds of lines in tool output and logs; the first match counts. */
export const outputCues: readonly (readonly ["frame" | "failing" | "exit" | "count", RegExp])[] = [
  ["frame", frame],
  [
    "failing",
    phrases(
      "(?<!\\b0 )(?:errors?|fail(?:ed|ures?|s|ing)?)|fatal|not ok|panic(?:ked)?|denied|refused|exception|traceback",
      "cannot|unable|timed? ?out|not found|no such|critical|killed",
    ),
  ],
  ["failing", /\b(?:E[A-Z]{4,}|ERR_[A-Z_]+|[A-Z]\w*(?:Error|Exception))\b|[✗✖]|エラー|失敗|错误|失败|오류|실패/],
  ["exit", /\bexit(?:ed)?\b.{0,16}\d|\bcode [1-9]\d*\b/i],
  [
    "count",
    phrases(
      "\\d+ (?:passed|skipped|pending|tests?|warnings?|files?|insertions?|rows?|match(?:es)?|issues?|packages?)",
      "(?:total|pass|tests|duration|coverage|version|size)[^a-z0-9]{1,3}\\d+",
    ),
  ],
];
