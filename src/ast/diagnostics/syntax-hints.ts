/** Hints for syntax errors: what a token in this place means in other languages, or a common slip, and what to type. */
import { RESERVED } from '../nodes/names.ts'

export interface ErrorLocation {
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

export const AFTER_FORMAT =
  'after a format, in this order and each once: `live`, `in place`, `capacity E`, `in all`, `for NAME`'

const inTop = (p: ErrorLocation): boolean => p.expected.some((e) => e.startsWith('a declaration'))
/** A word begins a statement, so only the index of an element is possible after it. */
const opensElement = (p: ErrorLocation): boolean => p.expected.includes('`[`')

/** After `call f(g(X, a`, `call f(g<f16`: the name of an argument, or a type, of a call inside a call. */
const IN_NESTED_CALL = /\bcall\b[^;{}()]*\([^;{}]*\w(\([^()]*\b\w+|<\s*\w+)$/

/** The first rule that holds gives the hint. */
const HINTS: readonly Hint[] = [
  {
    when: (p) => p.found === 'space' && inTop(p),
    text: 'write a search space as `schedule KERNEL.NAME choose by search { … }`',
  },
  {
    when: (p) => /^(for|while|forall)$/.test(p.found) || /(^|[{};\n])\s*(for|while|forall)$/.test(p.before),
    text: 'there are no loops to write: `iterate NAME [i, j] as SR { … }` says what to compute, a schedule how',
  },
  {
    when: (p) => /^(def|fn|fun|func|function|void|class|__global__|@)$/.test(p.found) && inTop(p),
    text: 'a program begins with a declaration: `kernel NAME(m: size) { … }`',
  },
  {
    when: (p) => p.found === '@' && p.expected.includes('an operator'),
    text: 'write a matrix product as a sum over the shared iterator: `C[i, f] += A[i, j] * B[j, f]`',
  },
  {
    when: (p) => /\b(float|double|half|int|auto|var|const)$/.test(p.before) && opensElement(p),
    text: 'a new name begins with `let`: `let t = A[i, j]`',
  },
  {
    when: (p) => /\breturn$/.test(p.before) && opensElement(p),
    text: 'results are assigned to outputs: `y[i] = …`',
  },
  {
    when: (p) => /\b(call|repeat)$/.test(p.before) && opensElement(p),
    text: '`call` and `repeat` are members of a kernel: write them next to the iterations, not inside of one',
  },
  {
    when: (p) => /\b(elif|elsif|elseif)$/.test(p.before) && opensElement(p),
    text: 'write `else if (…) { … }`',
  },
  {
    when: (p) => /\b(__syncthreads|barrier|syncthreads)$/.test(p.before) && opensElement(p),
    text: 'leave the call out: the compiler inserts barriers',
  },
  {
    when: (p) => /\batomic\w*$/i.test(p.before) && opensElement(p),
    text: 'write `y[i] += x` in the kernel, and `atomic y` in the schedule',
  },
  {
    when: (p) => p.found === '(' && /\biterate\s+\w+$/.test(p.before),
    text: 'iterators are in square brackets: `iterate NAME [i, j] as SR { … }`',
  },
  {
    when: (p) => /\biterate\s+\w+$/.test(p.before) && opensElement(p),
    text: 'name the axes to iterate: `iterate NAME [i, j] as SR { … }`',
  },
  {
    when: (p) => /\bbuffer\s+\w+(\s*:\s*\w+)?$/.test(p.before) && /^[=<.]/.test(p.found),
    text: 'write `buffer A: f32[i, j] in`',
  },
  {
    when: (p) => p.found === '(' && opensElement(p),
    text: 'elements are in square brackets: `y[i]`',
  },
  {
    when: (p) => p.found === '[' && p.before.endsWith(']'),
    text: 'all indices are in one pair of brackets: `A[i, j]`',
  },
  {
    when: (p) => p.found === '[' && /\w\.\w+$/.test(p.before),
    text: 'tensors have no attributes: use an element `A[i, j]`, or a size such as `m`',
  },
  {
    when: (p) => p.found === '[' && p.expected.includes('`live`'),
    text: 'arguments of a format are in parentheses: `bsr(8)`',
  },
  {
    when: (p) => /^\.[a-z]/i.test(p.found) && p.expected.includes('an operator'),
    text: 'values have no methods; functions take the value: `exp(x)`, `f32(x)`',
  },
  {
    when: (p) => p.found === ':' && /[[,]$/.test(p.before),
    text: 'there are no slices: iterate the axis, `iterate NAME [i, j] as SR { … }`',
  },
  {
    when: (p) => p.found === ':' && p.expected.includes('`{`'),
    text: 'statements of a condition are in braces: `if (…) { … }`',
  },
  {
    when: (p) => p.found === ':' && /\baxis\s+\w+$/.test(p.before),
    text: 'write `axis i = dense_fixed(m)`',
  },
  {
    when: (p) => /[^\s{};]\s+if$/.test(p.before) && /=[^\n]*$/.test(p.before),
    text: 'write `select(condition, a, b)`',
  },
  {
    when: (p) => /\bif$/.test(p.before) && p.expected.includes('`(`'),
    text: 'a condition stands in parentheses: `if (…) { … }`',
  },
  {
    when: (p) => p.found === 'is' && p.expected.includes('an operator'),
    text: 'to compare, write `==`',
  },
  {
    when: (p) => /\((float|double|half|int|[fiu]\d+)\)\s*[\w[\], ]+$/.test(p.before),
    text: 'to convert, write `f32(x)`',
  },
  {
    when: (p) => p.found === '=' && /\b(axis|dim|keepdims)$/.test(p.before),
    text: 'reduce over an iterator `R` instead: `iterate NAME [i, j] as SR { y[i] += A[i, j] }`',
  },
  {
    when: (p) => p.found === '"' && /\b(float|Number)\($/.test(p.before),
    text: 'write `inf` or `nan`',
  },
  {
    when: (p) => /^[0-9.]+[fFlLuU]$/.test(p.found),
    text: 'numbers have no suffix: `1.0`; to convert, write `f32(x)`',
  },
  {
    when: (p) => /^[0-9]+x[0-9]+$/.test(p.found),
    text: 'write one number for each parameter, with commas: `(8, 8)`',
  },
  {
    when: (p) => p.found === ',' && /\bas\s+[SR]$/.test(p.before),
    text: 'write one letter for each iterator, without commas: `as SR`',
  },
  {
    when: (p) => p.found === '(' && p.expected.includes('`->`'),
    text: 'write `->` before the parenthesis',
  },
  {
    when: (p) => p.found === '=' && p.expected.includes('`as`'),
    text: 'to store a tensor in a format, write `A as FORMAT`',
  },
  {
    when: (p) => p.found === ',' && p.expected.includes('`as`'),
    text: 'names of new loops follow the step: `split i by 4 -> (io, ii)`',
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
    when: (p) =>
      (p.found === '=' && /[-/%]$/.test(p.before)) || (/^[-/%]$/.test(p.found) && /^\S\s*=/.test(p.rest)),
    text: 'reducers are `+ * min max and or` and monoids; to subtract, reduce the negated value: `C[i] += -x`',
  },
  {
    when: (p) => p.found === '=' && /\b(as|part)\s+[\w.]+\s*\([^()]*\b\w+\s*$/.test(p.before),
    text: 'arguments are given in the order of the parameters, without their names: `(3)`',
  },
  {
    when: (p) => /^[=>]$/.test(p.found) && IN_NESTED_CALL.test(p.before),
    text: 'a call inside a call takes buffers only: write it in a line of its own, `call T = f(X, a = 2)`',
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
    when: (p) => p.expected.includes('`(`') && /\bschedule\s+\w+$/.test(p.before),
    text: 'the name of a schedule begins with its kernel: `schedule k.gpu`; a function has parameters: `schedule threads(i: loop)`',
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
    when: (p) => /^[0-9]/.test(p.found) && p.expected.includes('a name') && !p.expected.includes('`as`'),
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
    text: 'remove `unordered`: lists that are built at run time are always in order, at no cost',
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

/** Returns the text to type instead, from the text around the error; undefined if no rule holds. */
export const hintFor = (p: ErrorLocation): string | undefined => HINTS.find((h) => h.when(p))?.text
