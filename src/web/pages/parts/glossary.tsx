/** What the words mean, once for all pages. */

const words = [
  ["leaf, d0", "A summary of messages. d1 is a condensed summary, made of leaves; d2 is made of d1, and so on."],
  ["fold", "To put a summary in the place of older messages or summaries. They stay stored below it."],
  ["sweep, compaction", "A run of folds, as many as are due."],
  ["prompt", "What a model was sent. Most of it should stay the same from one to the next, so that a cache has it."],
  ["context", "What prompts are made of: the newest messages, and summaries of all that is older."],
  ["fresh tail", "The newest messages. They are never folded."],
  ["evicted", "In the context, but left out of a prompt, because it does not fit."],
  ["forgotten", "Redacted: its text is no longer stored."],
  ["standing instruction", "What a user said for good: pinned, so it is repeated in every prompt."],
  ["dissolve", "To take a summary apart: what it was made from is in the context again."],
  ["segment", "A part of one session, between two resets. Each is a conversation of its own here."],
  ["carried", "Copied into the next segment at a reset. Its sources stay in the segment before."],
  ["transplant", "To copy the summaries of a conversation into another one."],
  ["finding", "What a check of the stored data found, whether wrong or only worth knowing."],
] as const;

export const Glossary = () => (
  <section class="glossary-part" aria-label="What the words mean">
    <h3>What the words mean</h3>
    <dl class="glossary">
      {words.map(([word, meaning]) => (
        <div key={word}>
          <dt>{word}</dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  </section>
);
