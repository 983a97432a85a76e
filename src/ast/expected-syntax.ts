/** Expected syntax in error messages: failures of the grammar, condensed to the constructs that the tokens begin. */

/** A construct and the tokens that can begin it: if all of `when` are expected, `instead` replaces all of `of`. */
interface Group {
  readonly when: readonly string[]
  readonly of: readonly string[]
  readonly instead: string
}

const EXPRESSION = ['a number', 'a function', 'a name', '"("', 'a literal', 'an expression']
/** Steps with grammar rules of their own. The keywords of all other steps are passed to the parser. */
export const OTHER_STEPS = ['use', 'each', 'merge']
const quoted = (words: readonly string[]): string[] => words.map((w) => `"${w}"`)
const stepGroup = (words: readonly string[]): Group => ({
  when: quoted([...words, ...OTHER_STEPS]),
  of: [...quoted([...words, ...OTHER_STEPS]), 'a name'],
  instead: 'a step',
})

const GROUPS: readonly Group[] = [
  { when: ['a function'], of: EXPRESSION, instead: 'an expression' },
  {
    when: ['"kernel"', '"monoid"'],
    of: ['"kernel"', '"monoid"', '"format"', '"schedule"', '"space"', '"import"', '"memory"', '"instr"'],
    instead:
      'a declaration (`kernel`, `format`, `monoid`, `schedule`, `space`, `memory`, `instr` or `import`)',
  },
  { when: ['"let"', '"if"'], of: ['"let"', '"if"', '"iterate"', '"("', 'a name'], instead: 'a statement' },
  { when: ['an operator'], of: ['"["', '"."', '"("'], instead: 'an operator' },
  {
    when: ['a literal', 'a number', 'an expression'],
    of: ['a literal', 'a number', 'an expression'],
    instead: 'a number, `inf`, `nan`, `true` or `false`',
  },
  { when: ['a role'], of: ['a role'], instead: 'a role (`in`, `out`, `inout` or `local`)' },
  { when: ['iteration kinds'], of: ['iteration kinds'], instead: 'one `S` or `R` for each iterator' },
  {
    when: ['a hardware axis'],
    of: ['a hardware axis'],
    instead: 'a hardware axis (`block.x` … `thread.z`)',
  },
  {
    when: ['a modifier'],
    of: ['a modifier', '"for"', '"padded"', '"packed"'],
    instead: '`unordered`, `nonunique`, `full` or `compact`',
  },
]

/** Failures due to white space, ends of statements and negative conditions. */
export const noise = (failure: string): boolean => /^(not |"(\/|;|\s|\\[nrt])"$)/.test(failure)

/** The expected syntax for users: names of constructs instead of their first tokens. */
export function condense(failures: readonly string[], steps: readonly string[]): string[] {
  let set = new Set(failures)
  for (const { when, of, instead } of [...GROUPS, stepGroup(steps)]) {
    if (!when.every((w) => set.has(w))) continue
    set = new Set([...set].filter((f) => !of.includes(f)))
    set.add(instead)
  }
  for (const dull of ['end of input', '"."', '"["']) if (set.size > 1) set.delete(dull)
  const rank = (f: string): number => (!f.startsWith('"') ? 0 : /^"\w/.test(f) ? 1 : 2)
  return [...set]
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((f) =>
      f === 'end of input'
        ? 'the end of the file'
        : f.startsWith('"')
          ? `\`${f.slice(1, -1).replaceAll('\\"', '"')}\``
          : f,
    )
}
