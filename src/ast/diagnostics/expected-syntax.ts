/** Expected syntax in error messages: failures of the grammar, condensed to the constructs that the tokens begin. */

/** A construct and the tokens that can begin it: if all of `trigger` are expected, `replacement` replaces all of `replaced`. */
interface SyntaxGroup {
  readonly trigger: readonly string[]
  readonly replaced: readonly string[]
  readonly replacement: string
}

const EXPRESSION = ['a number', 'a function', 'a name', '"("', 'a literal', 'an expression']
/** Steps with grammar rules of their own. The keywords of all other steps are passed to the parser. */
export const OTHER_STEPS = ['use', 'each', 'merge']
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
    replaced: ['"kernel"', '"monoid"', '"format"', '"schedule"', '"import"', '"memory"', '"instr"'],
    replacement: 'a declaration (`kernel`, `format`, `monoid`, `schedule`, `memory`, `instr` or `import`)',
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
export const isNoise = (failure: string): boolean => /^(not |"(\/|;|\s|\\[nrt])"$)/.test(failure)

/** The expected syntax for users: names of constructs instead of their first tokens. */
export function condenseExpected(failures: readonly string[], steps: readonly string[]): string[] {
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
