/** Syntax errors: a readable summary of the grammar's failures at one location, and a likely mistake. */

import { RESERVED } from '../nodes/names.ts'
import { AXIS_CLAIMS, ROLES } from '../nodes/nodes.ts'
import { formText, type StepSyntax } from '../nodes/step-syntax.ts'
import type { Diagnostic, Source, Span } from './diagnostic.ts'
import { OPERATOR_HINTS, suggestedStep } from './foreign-names.ts'
import { nearest, orList } from './suggest.ts'
import { AFTER_FORMAT, type ErrorLocation, hintFor } from './syntax-hints.ts'

const TOKEN = /[A-Za-z_][A-Za-z0-9_]*|[0-9.]+[A-Za-z0-9_.]*|->|=>|:=|==|!=|<=|>=|&&|\|\||\*\*|\+\+|\S/uy

/** The token at `offset`; empty at the end of the file. */
function tokenAt(text: string, offset: number): string {
  TOKEN.lastIndex = offset
  return TOKEN.exec(text)?.[0] ?? ''
}

const shorten = (token: string): string => (token.length > 40 ? `${token.slice(0, 40)}…` : token)

/** A misspelt keyword parses as a name. Per row: the token then expected after it, and the keywords. */
const keywordsByToken = (steps: readonly string[]) => [
  { expected: '"as"', what: 'step', words: [...steps, ...OTHER_STEPS] },
  { expected: '"["', what: 'statement', words: ['let', 'if', 'iterate'] },
]

function withoutQuotes(failures: readonly string[]): string[] {
  return failures.flatMap((f) => /^"([a-z_]+)"$/.exec(f)?.[1] ?? [])
}

function misspeltKeyword(
  offset: number,
  source: Source,
  failures: readonly string[],
  steps: readonly string[],
): Diagnostic | undefined {
  const keywords = keywordsByToken(steps).find((l) => failures.length === 1 && failures[0] === l.expected)
  const before = source.text.slice(Math.max(0, offset - 80), offset).trimEnd()
  const name = /[A-Za-z_]\w*$/.exec(before)?.[0]
  if (!keywords || !name || nearest(name, keywords.words).length === 0) return undefined
  const end = Math.max(0, offset - 80) + before.length
  return {
    code: 'parse/unexpected',
    message: `there is no ${keywords.what} \`${name}\``,
    span: { source: source.name, start: end - name.length, end },
    lookup: { name, candidates: keywords.words },
  }
}

const formsHint = ({ word, forms }: StepSyntax): string =>
  `write ${orList(forms.map((f) => `\`${formText(word, f)}\``))}`

const DECLARED = /^[ \t]*(kernel|gradient|format|monoid|schedule|memory|instr|dispatch)\b/gm

/** The forms of the step around the error, if the error is in a schedule or space. */
function stepHint(before: string, steps: readonly StepSyntax[]): string | undefined {
  const [, declaration = ''] = [...before.matchAll(DECLARED)].at(-1) ?? []
  if (declaration !== 'schedule') return undefined
  const step = stepIn(/[^\n;{]*$/.exec(before)![0], steps)
  return step && formsHint(step)
}

/** The last step that begins on a line. */
function stepIn(line: string, steps: readonly StepSyntax[]): StepSyntax | undefined {
  const words = line.match(/\w+/g) ?? []
  const word = words.findLast((w) => steps.some((s) => s.word === w))
  return steps.find((s) => s.word === word)
}

/** A word after a complete step parses as the next step's tensor, whose `as` is missing at the next token. */
function wordAfterStep(
  offset: number,
  { name, text }: Source,
  failures: readonly string[],
  steps: readonly StepSyntax[],
): Diagnostic | undefined {
  if (!failures.includes('"as"') || failures.some((f) => f !== '"as"' && f !== '"("')) return undefined
  const end = text.slice(0, offset).trimEnd().length
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
    if (!/^\w/.test(text.slice(offset))) return undefined
    const stepSyntax = steps.find((s) => s.word === word)
    const found = tokenAt(text, offset)
    if (stepSyntax)
      return {
        code: 'parse/unexpected',
        message: `unexpected \`${shorten(found)}\``,
        span: { source: name, start: offset, end: offset + found.length },
        hint: formsHint(stepSyntax),
      }
    const candidates = [...new Set([...steps.map((s) => s.word), ...OTHER_STEPS])]
    // A tensor whose `as` is misspelt or missing, rather than a step.
    const isTensor = nearest(found, ['as']).length > 0 || /^[A-Z]/.test(word)
    const hint =
      suggestedStep(word) ??
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
  const step = stepIn(line, steps)
  const liveHint = hintFor({ found: word, before: `${line} ${word}`, rest: '', expected: ['`as`'] })
  return {
    code: 'parse/unexpected',
    message: `unexpected \`${word}\``,
    span,
    expected: 'the end of the step',
    hint: step ? formsHint(step) : (liveHint ?? AFTER_FORMAT),
  }
}

/** `exp (x)` parses as a name, then a tuple of targets; reported at the parenthesis. */
function spacedCall(offset: number, source: Source, expected: readonly string[]): Diagnostic | undefined {
  if (!expected.some((e) => e === 'a name' || e === '`[`' || e === 'an assignment')) return undefined
  const end = source.text.slice(0, offset).trimEnd().length
  const start = source.text.lastIndexOf('\n', end - 1) + 1
  const match = /[=(,+\-*/%<>]\s*((?:[A-Za-z_]\w*\.)?)([A-Za-z_]\w*)([ \t]*)\(/.exec(
    source.text.slice(start, end),
  )
  const [, prefix, name, blank] = match ?? []
  if (!match || !name || RESERVED.test(name) || (prefix === '' && blank === '')) return undefined
  const paren = start + match.index + match[0].length
  return {
    code: 'parse/unexpected',
    message: `unexpected \`(\` after \`${prefix}${name}\``,
    span: { source: source.name, start: paren - 1, end: paren },
    hint: prefix
      ? 'functions have no prefix, as in `exp(x)`; elements are read by index, as in `A[i, j]`'
      : `the parenthesis of a call follows the name directly: \`${name}(…)\``,
  }
}

/** The diagnostic for `allFailures` failures at `offset`, in Ohm's words. @param syntax of the steps that begin with a keyword */
export function explain(
  source: Source,
  offset: number,
  allFailures: readonly string[],
  syntax: readonly StepSyntax[],
): Diagnostic {
  const { name, text } = source
  const steps = syntax.map((s) => s.word)
  const failures = allFailures.filter((f) => !isNoise(f))
  const keywords = misspeltKeyword(offset, source, failures, steps)
  if (keywords) return keywords
  const stepError = wordAfterStep(offset, source, failures, syntax)
  if (stepError) return stepError
  // The first character of a doubled operator is an operator itself, so the error stands at the second one.
  const doubled = text.slice(offset - 1, offset + 1)
  const found = OPERATOR_HINTS.has(doubled) ? doubled : tokenAt(text, offset)
  const start = OPERATOR_HINTS.has(doubled) ? offset - 1 : offset
  const expected = condenseExpected(failures, steps)
  const callError = spacedCall(offset, source, expected)
  if (callError) return callError
  const location: ErrorLocation = {
    found,
    before: text.slice(Math.max(0, offset - 200), offset).trimEnd(),
    rest: text.slice(offset, offset + 200),
    expected,
  }
  const hint = OPERATOR_HINTS.get(found) ?? hintFor(location) ?? stepHint(text.slice(0, offset), syntax)
  const words = withoutQuotes(failures)
  if (failures.includes('a role')) words.push(...ROLES)
  if (failures.includes('a modifier')) words.push('unordered', 'nonunique', ...AXIS_CLAIMS)
  return {
    code: 'parse/unexpected',
    message: found === '' ? 'the file ends too early' : `unexpected \`${shorten(found)}\``,
    span: found === '' ? endOfText(source) : { source: name, start, end: start + found.length },
    expected: expected.length > 0 ? orList(expected) : endOfWord(text, offset),
    ...(nearest(found, words).length > 0 && { lookup: { name: found, candidates: words } }),
    ...(hint && { hint }),
  }
}

/** The expected text if only the end of a word is missing: `formatcsr`. */
const endOfWord = (text: string, offset: number): string =>
  `a blank after \`${/\w*$/.exec(text.slice(Math.max(0, offset - 80), offset))![0]}\``

function endOfText({ name, text }: Source): Span {
  const end = text.trimEnd().length
  return { source: name, start: end, end }
}

// Expected syntax in error messages: failures of the grammar, condensed to the constructs that the tokens
// begin.

/** A construct and the tokens that can begin it: if all of `trigger` are expected, `replacement` replaces all of `replaced`. */
interface SyntaxGroup {
  readonly trigger: readonly string[]
  readonly replaced: readonly string[]
  readonly replacement: string
}

const EXPRESSION = ['a number', 'a function', 'a name', '"("', 'a literal', 'an expression']
/** Steps with grammar rules of their own. The keywords of all other steps are passed to the parser. */
const OTHER_STEPS = ['use', 'each', 'merge']
const quoted = (words: readonly string[]): string[] => words.map((w) => `"${w}"`)
const stepGroup = (words: readonly string[]): SyntaxGroup => ({
  trigger: quoted([...words, ...OTHER_STEPS]),
  replaced: [...quoted([...words, ...OTHER_STEPS]), 'a name'],
  replacement: 'a step',
})

const GROUPS: readonly SyntaxGroup[] = [
  { trigger: ['a function'], replaced: EXPRESSION, replacement: 'an expression' },
  {
    trigger: ['"kernel"', '"monoid"'],
    replaced: [
      '"kernel"',
      '"gradient"',
      '"monoid"',
      '"format"',
      '"schedule"',
      '"import"',
      '"memory"',
      '"instr"',
      '"dispatch"',
    ],
    replacement:
      'a declaration (`kernel`, `gradient`, `format`, `monoid`, `schedule`, `memory`, `instr`, `dispatch` or `import`)',
  },
  {
    trigger: ['"let"', '"if"'],
    replaced: ['"let"', '"if"', '"iterate"', '"("', 'a name'],
    replacement: 'a statement',
  },
  { trigger: ['an operator'], replaced: ['"["', '"."', '"("'], replacement: 'an operator' },
  {
    trigger: ['a literal', 'a number', 'an expression'],
    replaced: ['a literal', 'a number', 'an expression'],
    replacement: 'a number, `inf`, `nan`, `true` or `false`',
  },
  { trigger: ['a role'], replaced: ['a role'], replacement: 'a role (`in`, `out`, `inout` or `local`)' },
  {
    trigger: ['iteration kinds'],
    replaced: ['iteration kinds'],
    replacement: 'one `S` or `R` for each iterator',
  },
  {
    trigger: ['a hardware axis'],
    replaced: ['a hardware axis'],
    replacement: 'a hardware axis (`block.x` … `thread.z`)',
  },
  {
    trigger: ['a modifier'],
    replaced: ['a modifier', '"for"', '"padded"', '"packed"'],
    replacement: '`unordered`, `nonunique`, `full` or `compact`',
  },
]

/** Failures due to white space, ends of statements and negative conditions. */
const isNoise = (failure: string): boolean => /^(not |"(\/|;|\s|\\[nrt])"$)/.test(failure)

/** The expected syntax for users: names of constructs instead of their first tokens. */
function condenseExpected(failures: readonly string[], steps: readonly string[]): string[] {
  let remaining = new Set(failures)
  for (const { trigger, replaced, replacement } of [...GROUPS, stepGroup(steps)]) {
    if (!trigger.every((w) => remaining.has(w))) continue
    remaining = new Set([...remaining].filter((f) => !replaced.includes(f)))
    remaining.add(replacement)
  }
  for (const token of ['end of input', '"<"', '"."', '"["']) if (remaining.size > 1) remaining.delete(token)
  const rank = (f: string): number => (!f.startsWith('"') ? 0 : /^"\w/.test(f) ? 1 : 2)
  return [...remaining]
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((f) =>
      f === 'end of input'
        ? 'the end of the file'
        : f.startsWith('"')
          ? `\`${f.slice(1, -1).replaceAll('\\"', '"')}\``
          : f,
    )
}
