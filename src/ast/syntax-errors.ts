/** Syntax errors: a readable summary of the grammar's failures at one location, and a likely mistake. */
import type { Diagnostic, Source, Span } from './diagnostic.ts'
import { condense, noise, OTHER_STEPS } from './expected-syntax.ts'
import { SPELLED, stepMeant } from './foreign-names.ts'
import { AXIS_CLAIMS, ROLES } from './nodes.ts'
import { formText, type StepSyntax } from './step-syntax.ts'
import { nearest, orList } from './suggest.ts'

const TOKEN = /[A-Za-z_][A-Za-z0-9_]*|[0-9.]+[A-Za-z0-9_.]*|->|==|!=|<=|>=|&&|\|\||\*\*|\S/uy

/** The token at `at`; empty at the end of the file. */
function tokenAt(text: string, at: number): string {
  TOKEN.lastIndex = at
  return TOKEN.exec(text)?.[0] ?? ''
}

const short = (token: string): string => (token.length > 40 ? `${token.slice(0, 40)}…` : token)

interface ErrorLocation {
  readonly found: string
  /** The text before the location, without trailing blanks. */
  readonly before: string
  /** The text from the location on. */
  readonly rest: string
  readonly expected: readonly string[]
}

interface Hint {
  readonly when: (p: ErrorLocation) => boolean
  readonly text: string
}

/** Reserved words, which cannot be names: `reserved` in the grammar. */
export const RESERVED = /^(let|if|else|iterate|as|and|or|not|true|false|inf|nan)$/

const AFTER_FORMAT =
  'after a format, in this order and each once: `live`, `in place`, `capacity E`, `in all`, `for NAME`'

const HINTS: readonly Hint[] = [
  {
    when: (p) => /^(for|while|forall)$/.test(p.found) || /(^|[{};\n])\s*(for|while|forall)$/.test(p.before),
    text: 'there are no loops to write: `iterate NAME [i, j] as SR { … }` says what to compute, a schedule how',
  },
  {
    when: (p) => p.found === '{' && p.before.endsWith(']') && p.expected.includes('`as`'),
    text: 'say what each iterator does, as in `[i, j] as SR`: `S` where different values write different elements, `R` where they combine',
  },
  {
    when: (p) => p.found === '{' && /\bbucket\b[^{}]*$/.test(p.before),
    text: 'name the width for the parts: `bucket i by length into 1, 2 .. 8 as width { … }`',
  },
  {
    when: (p) => p.found === '{' && /\beach\s+(part|nest)\s+of\s+\w+$/.test(p.before),
    text: 'name it for the steps: `each part of A as p { … }`, `each nest of C as p { … }`',
  },
  {
    when: (p) => /\bwhere$/.test(p.before) && p.expected.includes('`(`'),
    text: 'a condition stands in parentheses: `where (…)`',
  },
  {
    when: (p) => p.expected.includes('`:`') && /\bkernel\s+\w+\s*\([^()]*$/.test(p.before),
    text: 'each parameter has a type: `m: size`, `alpha: f32`',
  },
  {
    when: (p) => p.expected.some((e) => e.startsWith('a role')),
    text: 'every buffer says how it is used: `buffer A: f32[i, j] in`',
  },
  {
    when: (p) => p.found === '=' && /[-/%]$/.test(p.before),
    text: 'reducers are `+ * min max and or` and monoids; to subtract, reduce the negated value: `C[i] += -x`',
  },
  {
    when: (p) => /^[-/%]$/.test(p.found) && /^\S\s*=/.test(p.rest),
    text: 'reducers are `+ * min max and or` and monoids; to subtract, reduce the negated value: `C[i] += -x`',
  },
  {
    when: (p) => p.found === '=' && /\b(use|as|part)\s+[\w.]+\s*\([^()]*\b\w+\s*$/.test(p.before),
    text: 'arguments are given in the order of the parameters, without their names: `(3)`',
  },
  {
    when: (p) => p.found === '=' && p.expected.includes('an operator'),
    text: '`=` assigns; to compare, write `==`',
  },
  {
    when: (p) => p.found === '==' && p.expected.includes('an assignment'),
    text: '`==` compares; to assign, write `=`',
  },
  {
    when: (p) => /^(<=?|>=?|==|!=)$/.test(p.found) && p.expected.includes('an operator'),
    text: 'comparisons do not chain: write `a < b and b < c`',
  },
  {
    when: (p) => p.found === '(' && p.expected.includes('an assignment'),
    text: 'elements are in square brackets: `C[i, j]`',
  },
  {
    when: (p) => /^[=+*]$/.test(p.found) && p.expected.includes('`[`'),
    text: 'an element is written `y[i]`, that of a scalar buffer `s[]`; a new name begins with `let`',
  },
  {
    when: (p) => p.expected.includes('`axis`') && /^(let\b|if\b|\(|\w+\s*\[)/.test(p.rest),
    text: 'statements stand in an iteration: `iterate NAME [i, j] as SR { … }`',
  },
  {
    when: (p) => p.expected.includes('`.`') && /\bschedule\s+\w+$/.test(p.before),
    text: 'the name of a schedule begins with its kernel: `schedule k.gpu`',
  },
  {
    when: (p) => p.found === '"' && p.expected.includes('a path in quotes'),
    text: 'the quotes are not closed on this line',
  },
  {
    when: (p) => /^\.[0-9]/.test(p.found),
    text: 'write the zero: `0.5`',
  },
  {
    when: (p) => /^[0-9]/.test(p.found) && p.expected.some((e) => e === 'a name'),
    text: 'a name begins with a letter or `_`',
  },
  {
    when: (p) => p.found === ':' && /\blet\s+\w+$/.test(p.before),
    text: '`let` takes the type of its value; to convert, write `f32(x)`',
  },
  {
    // After a complete step, the word was read as the tensor of the next step.
    when: (p) =>
      /\blive\b[^;\n]*\bunordered$/.test(p.found === 'unordered' ? `${p.before} unordered` : p.before),
    text: 'leave `unordered` out: lists are found in order, which takes nothing more than any other',
  },
  {
    when: (p) => p.expected.includes('`as`') && /\bas\b[^;\n]*\b(live|in|place|capacity|for)$/.test(p.before),
    text: AFTER_FORMAT,
  },
  {
    when: (p) => RESERVED.test(p.found) && p.expected.some((e) => e === 'a name'),
    text: 'this word is reserved; choose another name',
  },
]

/** A misspelt keyword parses as a name. Per row: the token then expected after it, and the keywords. */
const leadsOf = (steps: readonly string[]) => [
  { expected: '"as"', what: 'step', words: [...steps, ...OTHER_STEPS] },
  { expected: '"["', what: 'statement', words: ['let', 'if', 'iterate'] },
]

function unquoted(failures: readonly string[]): string[] {
  return failures.flatMap((f) => /^"([a-z_]+)"$/.exec(f)?.[1] ?? [])
}

function misspelt(
  at: number,
  source: Source,
  failures: readonly string[],
  steps: readonly string[],
): Diagnostic | undefined {
  const lead = leadsOf(steps).find((l) => failures.length === 1 && failures[0] === l.expected)
  const before = source.text.slice(Math.max(0, at - 80), at).trimEnd()
  const name = /[A-Za-z_]\w*$/.exec(before)?.[0]
  if (!lead || !name || nearest(name, lead.words).length === 0) return undefined
  const end = Math.max(0, at - 80) + before.length
  return {
    code: 'parse/unexpected',
    message: `there is no ${lead.what} \`${name}\``,
    span: { source: source.name, start: end - name.length, end },
    lookup: { name, candidates: lead.words },
  }
}

const formsText = ({ word, forms }: StepSyntax): string =>
  `write ${orList(forms.map((f) => `\`${formText(word, f)}\``))}`

/** A word after a complete step parses as the next step's tensor, whose `as` is missing at the next token. */
function afterStep(
  at: number,
  { name, text }: Source,
  failures: readonly string[],
  steps: readonly StepSyntax[],
): Diagnostic | undefined {
  if (!failures.includes('"as"') || failures.some((f) => f !== '"as"' && f !== '"("')) return undefined
  const end = text.slice(0, at).trimEnd().length
  const word = /[A-Za-z_]\w*$/.exec(text.slice(Math.max(0, end - 80), end))?.[0]
  if (!word || RESERVED.test(word)) return undefined
  const start = end - word.length
  const before = text.slice(Math.max(0, start - 400), start)
  const line = /[^\n;{]*$/.exec(before)![0]
  // A format is missing, so the keyword of the next step was read as one.
  if (
    before
      .slice(0, before.length - line.length)
      .trimEnd()
      .endsWith('+')
  )
    return undefined
  const span = { source: name, start, end }
  if (line.trim() === '') {
    if (!/^\w/.test(text.slice(at))) return undefined
    const own = steps.find((s) => s.word === word)
    const found = tokenAt(text, at)
    if (own)
      return {
        code: 'parse/unexpected',
        message: `unexpected \`${short(found)}\``,
        span: { source: name, start: at, end: at + found.length },
        hint: formsText(own),
      }
    const candidates = [...new Set([...steps.map((s) => s.word), ...OTHER_STEPS])]
    // A tensor whose `as` is misspelt or missing, rather than a step.
    const isTensor = nearest(found, ['as']).length > 0 || /^[A-Z]/.test(word)
    const hint =
      stepMeant(word) ??
      (isTensor ? `to store tensor ${word} in a format, write \`${word} as FORMAT\`` : undefined)
    return {
      code: 'parse/unexpected',
      message: `there is no step \`${word}\``,
      span,
      lookup: { name: word, candidates },
      expected: `a step: ${[...candidates].sort().join(', ')}`,
      ...(hint && { hint }),
    }
  }
  if (/^(each|iterate|bucket|partition|import)\b/.test(line.trim())) return undefined
  const step = steps.findLast((s) => new RegExp(`\\b${s.word}\\b`).test(line))
  const live = HINTS.find((h) =>
    h.when({ found: word, before: `${line} ${word}`, rest: '', expected: ['`as`'] }),
  )
  return {
    code: 'parse/unexpected',
    message: `unexpected \`${word}\``,
    span,
    expected: 'the end of the step',
    hint: step ? formsText(step) : (live?.text ?? AFTER_FORMAT),
  }
}

/** `exp (x)` parses as a name, then a tuple of targets; reported at the parenthesis. */
function spacedCall(at: number, source: Source, expected: readonly string[]): Diagnostic | undefined {
  if (!expected.some((e) => e === 'a name' || e === '`[`' || e === 'an assignment')) return undefined
  const end = source.text.slice(0, at).trimEnd().length
  const start = source.text.lastIndexOf('\n', end - 1) + 1
  const match = /[=(,+\-*/%<>]\s*([A-Za-z_]\w*)[ \t]+\(/.exec(source.text.slice(start, end))
  const name = match?.[1]
  if (!match || !name || RESERVED.test(name)) return undefined
  const paren = start + match.index + match[0].length
  return {
    code: 'parse/unexpected',
    message: `unexpected \`(\` after \`${name}\``,
    span: { source: source.name, start: paren - 1, end: paren },
    hint: `the parenthesis of a call follows the name directly: \`${name}(…)\``,
  }
}

/** The diagnostic for `all` failures at `at`, in Ohm's words. @param syntax of the steps that begin with a keyword */
export function explain(
  source: Source,
  at: number,
  all: readonly string[],
  syntax: readonly StepSyntax[],
): Diagnostic {
  const { name, text } = source
  const steps = syntax.map((s) => s.word)
  const failures = all.filter((f) => !noise(f))
  const lead = misspelt(at, source, failures, steps)
  if (lead) return lead
  const after = afterStep(at, source, failures, syntax)
  if (after) return after
  const found = tokenAt(text, at)
  const expected = condense(failures, steps)
  const call = spacedCall(at, source, expected)
  if (call) return call
  const place: ErrorLocation = {
    found,
    before: text.slice(Math.max(0, at - 200), at).trimEnd(),
    rest: text.slice(at, at + 200),
    expected,
  }
  const hint = SPELLED.get(found) ?? HINTS.find((h) => h.when(place))?.text
  const words = unquoted(failures)
  if (failures.includes('a role')) words.push(...ROLES)
  if (failures.includes('a modifier')) words.push('unordered', 'nonunique', ...AXIS_CLAIMS)
  return {
    code: 'parse/unexpected',
    message: found === '' ? 'the file ends too early' : `unexpected \`${short(found)}\``,
    span: found === '' ? endOf(source) : { source: name, start: at, end: at + found.length },
    expected: expected.length > 0 ? orList(expected) : endOfWord(text, at),
    ...(nearest(found, words).length > 0 && { lookup: { name: found, candidates: words } }),
    ...(hint && { hint }),
  }
}

/** The expected text if only the end of a word is missing: `formatcsr`. */
const endOfWord = (text: string, at: number): string =>
  `a blank after \`${/\w*$/.exec(text.slice(Math.max(0, at - 80), at))![0]}\``

function endOf({ name, text }: Source): Span {
  const end = text.trimEnd().length
  return { source: name, start: end, end }
}
