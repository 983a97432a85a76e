// The measures of the prose lint. Each rule finds phrases and names the better word; rates are per 1,000 words.

/** Words of the glossary's left column (docs/project/glossary.md), as patterns, and the field's term for each. */
const WORDS = [
  ['found in (?:each|a|every|the) run|finds? (?:a|the) format', 'built at run time'],
  ['asks?|asked|asking', 'evaluates, checks, queries, requires'],
  ['tells?|told|telling|says?|said|saying', 'reports, states, prints'],
  ['knows?|wants?|wanted|hears?', 'records, requires, receives'],
  ['readers?', 'consumer'],
  ['writers?', 'producer'],
  [
    '(?:its|each|a|own|every|per|one) share(?! of)|shares(?! (?:the|a|an|one|its|their)\\b)',
    'chunk, work partition',
  ],
  ['dealt|deals', 'distributes, partitions over'],
  ['rooms?', 'capacity; module, folder'],
  ['under way', 'in flight'],
  ['at one time', 'concurrently'],
  ['(?:stands?|standing) under', 'is nested in'],
  ['lies?|lay', 'resides in, is stored in'],
  ['brings?|brought|bringing', 'convert, upload, load'],
  [
    'texts? of (?:a|an|the|its|each|every) (?:kernel|instruction|launch|shader|program|format|schedule)s?|(?:kernel|CUDA|WGSL|emitted|shader) texts?',
    'source, generated code',
  ],
  ['(?<!loop )nests?', 'loop nest; kernel launch'],
  ['unasked|standard schedules?', 'default schedule'],
  ['guess(?:es|ed)?', 'heuristic default'],
  ['choices?', 'dispatch, selection, variants'],
  ['drawn(?! (?:as|in|to|with)\\b)', 'random, synthetic, sampled'],
  ['laws?', 'property'],
  ['read over', 'refactor, clean up'],
  ['alike', 'identical, uniform'],
  ['refus(?:es?|ed|ing|als?)', 'reject'],
  ['accessed bytes|bytes at least', 'requested traffic; compulsory traffic'],
  ['half floats?', 'fp16, bf16, half precision'],
  ['sampled dense × dense', 'SDDMM'],
  ['sparse × dense', 'SpMM'],
  ['clearing', 'zero-fill'],
  ['the rest', 'remainder, tail; the other …'],
  ['made of digits', 'affine tiling'],
  ['as (?:declared|written)', 'unscheduled, naive'],
  ['(?<!there )(?:is|are) no (?!longer\\b|more\\b)\\w+', 'is not a …'],
  ['so many', 'n'],
  ['beside', 'next to, in addition to'],
  ['or else', 'otherwise'],
]

const better = WORDS.map(([pattern, word]) => [new RegExp(`^(?:${pattern})$`, 'i'), word])
const NOUN = 'a noun of the field: builder, consumer, input, capacity, …'

/**
 * One entry a measure: how phrases are matched and the target that the measure may stay at. `atLeast` turns the ratchet
 * around: the rate may only rise. `kinds` limits a measure to blocks of one kind, `groups` to some groups.
 */
export const MEASURES = {
  relatives: {
    title: '"what …", "who …" for a noun',
    // Questions and "what to do" are English; the exclusions are those of the guide's own figures.
    pattern:
      /\b(?:what|who) (?!(?:is|are|do|does|did|if|about|was|were)\b (?:a |the |this|it\b|you|sparse|new)|to\b|you\b|we\b|I\b|kind\b)\w*/gi,
    better: () => NOUN,
    target: 0.5,
  },
  starts: {
    title: 'sentences that start with What, Who, Of, Where, "That … is"',
    pattern: /(?:^|(?<=[.!?]\s+))(?:What|Who|Whose|Of|Where|That \w+(?: \w+)? (?:is|are))\b(?![^.!?]*\?)/g,
    better: (phrase) => (phrase === 'Where' ? 'If' : 'start with a noun or a verb'),
    target: 0.5,
  },
  glossary: {
    title: "words of the glossary's left column",
    pattern: new RegExp(`\\b(?:${WORDS.map(([p]) => p).join('|')})(?!\\w)`, 'gi'),
    better: (phrase) => better.find(([p]) => p.test(phrase))?.[1] ?? 'see the glossary',
    target: 1,
  },
  pronouns: {
    title: 'it, them, these, others, one, all',
    pattern: /\b(?:it|its|them|they|these|those|others|one|ones|all)\b/gi,
    better: () => 'the noun itself',
    target: 25,
  },
  paragraphs: {
    title: 'paragraphs over 80 words',
    limit: 80,
    kinds: ['paragraph'],
    better: () => 'two paragraphs, a list or a table',
    target: 0,
    groups: /^(?:readme|architecture|docs)$/,
  },
  cells: {
    title: 'table cells over 25 words',
    limit: 25,
    kinds: ['cell'],
    better: () => 'a shorter cell, the details below the table',
    target: 0,
    groups: /^(?:readme|architecture|docs)$/,
  },
  you: {
    title: 'you, we, our',
    pattern: /\b(?:you|your|we|let's|our)\b/gi,
    target: 5,
    atLeast: true,
    groups: /^(?:readme|docs)$/,
  },
  examples: {
    title: '"for example", "such as"',
    pattern: /\b(?:for example|e\.g\.|such as|for instance)(?!\w)/gi,
    target: 2,
    atLeast: true,
    groups: /^(?:readme|docs)$/,
  },
}

export const wordsOf = (text) => text.match(/[A-Za-z][A-Za-z'-]*/g)?.length ?? 0

/** The phrases of a block that a measure counts: `{ line, phrase, better }`. */
export function phrases(measure, block) {
  if (measure.kinds && !measure.kinds.includes(block.kind)) return []
  if (measure.limit) {
    const words = wordsOf(block.text)
    return words > measure.limit
      ? [{ line: block.line, phrase: `${words} words`, better: measure.better() }]
      : []
  }
  return [...block.text.matchAll(measure.pattern)].map((m) => ({
    line: block.line + (block.text.slice(0, m.index).match(/\n/g)?.length ?? 0),
    phrase: m[0].replace(/\s+/g, ' '),
    better: measure.better?.(m[0].replace(/\s+/g, ' ')) ?? '',
  }))
}
