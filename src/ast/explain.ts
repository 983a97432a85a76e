/** A syntax error in human words: what the grammar's failures at one place amount to, and the mistake it may be. */
import type { Diagnostic, Source } from './diagnostic.ts'
import { ROLES } from './nodes.ts'

/** Failures that together mean one thing: where all of `when` are expected, `instead` replaces all of `of`. */
interface Group {
  readonly when: readonly string[]
  readonly of: readonly string[]
  readonly instead: string
}

const EXPRESSION = ['a number', 'a function', 'a name', '"("', 'a literal', 'an expression']
const STEP_WORDS = [
  'split',
  'bind',
  'reorder',
  'fuse',
  'tile',
  'unroll',
  'vectorize',
  'cache_read',
  'cache_write',
  'compute_at',
  'fission',
  'rfactor',
  'atomic',
  'attach',
  'use',
].map((w) => `"${w}"`)

const GROUPS: readonly Group[] = [
  { when: ['a function'], of: EXPRESSION, instead: 'an expression' },
  {
    when: ['"kernel"', '"monoid"'],
    of: ['"kernel"', '"monoid"', '"format"', '"schedule"', '"import"'],
    instead: 'a declaration (`kernel`, `format`, `monoid`, `schedule` or `import`)',
  },
  { when: ['"split"', '"bind"'], of: [...STEP_WORDS, 'a name'], instead: 'a step' },
  { when: ['"let"', '"if"'], of: ['"let"', '"if"', '"iterate"', '"("', 'a name'], instead: 'a statement' },
  { when: ['an operator'], of: ['"["', '"."', '"("'], instead: 'an operator' },
  { when: ['a role'], of: ['a role'], instead: 'a role (`in`, `out`, `inout` or `local`)' },
  { when: ['iteration kinds'], of: ['iteration kinds'], instead: 'one `S` or `R` for each iterator' },
  { when: ['a modifier'], of: ['a modifier'], instead: '`unordered` or `nonunique`' },
]

/** "`a`, `b` or `c`". */
export function orList(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

function condense(failures: readonly string[]): string[] {
  let set = new Set(failures.filter((f) => !f.startsWith('not ') && f !== '";"'))
  for (const { when, of, instead } of GROUPS) {
    if (!when.every((w) => set.has(w))) continue
    set = new Set([...set].filter((f) => !of.includes(f)))
    set.add(instead)
  }
  if (set.size > 1) set.delete('end of input')
  const rank = (f: string): number => (f.startsWith('"') ? 1 : 0)
  return [...set]
    .sort((a, b) => rank(a) - rank(b))
    .map((f) =>
      f === 'end of input'
        ? 'the end of the file'
        : f.startsWith('"')
          ? `\`${f.slice(1, -1).replaceAll('\\"', '"')}\``
          : f,
    )
}

const TOKEN = /[A-Za-z_][A-Za-z0-9_]*|[0-9.]+[A-Za-z0-9_.]*|->|==|!=|<=|>=|&&|\|\||\*\*|\S/uy

/** What stands at `at`, as a reader sees it; empty at the end of the file. */
function tokenAt(text: string, at: number): string {
  TOKEN.lastIndex = at
  return TOKEN.exec(text)?.[0] ?? ''
}

interface Place {
  readonly found: string
  /** The text before the place, on its line and before, without trailing blanks. */
  readonly before: string
  /** The text from the place on. */
  readonly rest: string
  readonly expected: readonly string[]
}

interface Hint {
  readonly when: (p: Place) => boolean
  readonly text: string
}

const RESERVED = /^(let|if|else|iterate|as|and|or|not|true|false|inf|nan)$/
const SPELLED: Readonly<Record<string, string>> = {
  '&&': 'write `and`',
  '||': 'write `or`',
  '!': 'write `not`',
  '&': 'write `and`',
  '|': 'write `or`',
  '**': 'write `pow(x, y)`',
  '^': 'write `pow(x, y)`',
  '?': 'write `select(condition, a, b)`',
  "'": 'paths stand in double quotes',
  '#': 'comments begin with `//`',
}

const HINTS: readonly Hint[] = [
  {
    when: (p) => /^(for|while|forall)$/.test(p.found) || /\b(for|while|forall)$/.test(p.before),
    text: 'there are no loops to write: `iterate NAME [i, j] as SR { … }` says what to compute, a schedule how',
  },
  {
    when: (p) => p.found === '{' && p.expected.includes('`as`'),
    text: 'say what each iterator does, as in `[i, j] as SR`: `S` where different values write different elements, `R` where they combine',
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
    when: (p) =>
      p.found === '(' && p.expected.includes('an operator') && /[A-Za-z0-9_]\s$/.test(`${p.before} `),
    text: 'the parenthesis of a call follows the name directly: `exp(x)`',
  },
  {
    when: (p) => p.found === '(' && p.expected.includes('an assignment'),
    text: 'elements are in square brackets: `C[i, j]`',
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
    when: (p) => RESERVED.test(p.found) && p.expected.some((e) => e === 'a name'),
    text: 'this word is reserved; choose another name',
  },
]

/** The diagnostic for failures at `at`; texts are Ohm's: descriptions, or terminals in double quotes. */
export function explain(source: Source, at: number, failures: readonly string[]): Diagnostic {
  const { name, text } = source
  const found = tokenAt(text, at)
  const expected = condense(failures)
  const place: Place = {
    found,
    before: text.slice(Math.max(0, at - 200), at).trimEnd(),
    rest: text.slice(at, at + 200),
    expected,
  }
  const hint = SPELLED[found] ?? HINTS.find((h) => h.when(place))?.text
  const words = failures.flatMap((f) => /^"([a-z_]+)"$/.exec(f)?.[1] ?? [])
  if (failures.includes('a role')) words.push(...ROLES)
  if (failures.includes('a modifier')) words.push('unordered', 'nonunique')
  return {
    code: 'parse/unexpected',
    message: found === '' ? 'the file ends too early' : `unexpected \`${found}\``,
    span: { source: name, start: at, end: at + found.length },
    ...(expected.length > 0 && { expected: orList(expected) }),
    ...(/^[A-Za-z]/.test(found) && words.length > 0 && { lookup: { name: found, candidates: words } }),
    ...(hint && { hint }),
  }
}
