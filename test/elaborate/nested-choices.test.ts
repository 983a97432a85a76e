/** Choices that call or extend choices: flattened branches decide as evaluating the nesting does. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide, dispatchCall } from '../../src/api/dispatch/dispatch-conditions.ts'
import type { Choice } from '../../src/elaborate/index.ts'
import { elaborate } from '../../src/elaborate/index.ts'
import { load, SptError } from '../../src/node.ts'
import { loadProgram, programOf } from '../../src/schedule/steps/language.ts'
import { property } from '../support/property.ts'

const KERNEL = `kernel mul(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j]  in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f]  out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
format tiled(b = 4) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b) * b)
  axis jo = dense_fixed(j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
schedule mul.rows(by = 4) { split i by by }
schedule mul.cols(by, more = 2 * by) { split f by by }
schedule mul.plain {}
`

// An expression, a call and a choice as text, and what they come to by other means than the compiler's.
type Values = Readonly<Record<string, number>>
interface Term {
  readonly text: string
  readonly value: (v: Values) => number
}
interface Rule {
  /** `null`: otherwise. */
  readonly cond: readonly Term[] | null
  readonly calls: readonly Call[]
  readonly isFastest: boolean
}
interface Call {
  /** A schedule, or the number of an earlier choice. */
  readonly to: 'rows' | 'cols' | 'plain' | number
  readonly args: readonly Term[]
}
interface Written {
  readonly params: number
  readonly rules: readonly Rule[]
}

const number = fc.integer({ min: 0, max: 6 }).map((n): Term => ({ text: String(n), value: () => n }))
const nameOf = (params: number): fc.Arbitrary<Term> =>
  fc
    .constantFrom('m', 'd', 'nnz(A)', ...Array.from({ length: params }, (_, k) => `p${k}`))
    .map((name) => ({ text: name, value: (v) => v[name]! }))
const term = (params: number): fc.Arbitrary<Term> => {
  const leaf = fc.oneof(number, nameOf(params))
  const sum = fc.tuple(leaf, fc.constantFrom('+', '*', '-'), leaf).map(
    ([a, op, b]): Term => ({
      text: `(${a.text} ${op} ${b.text})`,
      value: (v) => {
        const [x, y] = [a.value(v), b.value(v)]
        return op === '+' ? x + y : op === '-' ? x - y : x * y
      },
    }),
  )
  return fc.oneof(leaf, sum)
}
const condition = (params: number): fc.Arbitrary<Term> =>
  fc.tuple(term(params), fc.constantFrom('<', '>=', '=='), term(params)).map(([a, op, b]) => ({
    text: `${a.text} ${op} ${b.text}`,
    value: (v) => {
      const [x, y] = [a.value(v), b.value(v)]
      return Number(op === '<' ? x < y : op === '>=' ? x >= y : x === y)
    },
  }))

/** A call of a schedule or of one of the choices, whose numbers of parameters are given. */
const call = (params: number, choices: readonly number[]): fc.Arbitrary<Call> => {
  const given = (least: number, most: number): fc.Arbitrary<readonly Term[]> =>
    fc.array(term(params), { minLength: least, maxLength: most })
  return fc.oneof(
    given(0, 1).map((args): Call => ({ to: 'rows', args })),
    given(1, 2).map((args): Call => ({ to: 'cols', args })),
    fc.constant<Call>({ to: 'plain', args: [] }),
    ...choices.map((n, to) => given(0, n).map((args): Call => ({ to, args }))),
    ...choices.map((n, to) => given(0, n).map((args): Call => ({ to, args }))),
  )
}
const rule = (params: number, choices: readonly number[]): fc.Arbitrary<Rule> =>
  fc
    .tuple(
      fc.array(condition(params), { minLength: 1, maxLength: 2 }),
      fc.array(call(params, choices), { minLength: 1, maxLength: 3 }),
      fc.boolean(),
    )
    .map(([cond, calls, isFastest]) => ({ cond, calls: isFastest ? calls : calls.slice(0, 1), isFastest }))
const written = (choices: readonly number[], params: fc.Arbitrary<number>): fc.Arbitrary<Written> =>
  params.chain((n) =>
    fc
      .tuple(fc.array(rule(n, choices), { minLength: 1, maxLength: 3 }), fc.boolean(), rule(n, choices))
      .map(([rules, hasRest, last]) => ({
        params: n,
        rules: hasRest ? [...rules, { ...last, cond: null }] : rules,
      })),
  )
const several: fc.Arbitrary<readonly Written[]> = fc.nat(2).chain((more) => {
  const some = fc.nat(2)
  let all: fc.Arbitrary<readonly Written[]> = written([], some).map((w) => [w])
  for (let k = 0; k <= more; k++)
    all = all.chain((before) =>
      written(
        before.map((w) => w.params),
        some,
      ).map((w) => [...before, w]),
    )
  return all
})

/** Defaults of parameters: `p1` is one more than `p0`. */
const defaultOf = (k: number, before: readonly number[]): number => (k === 0 ? 3 : before[k - 1]! + 1)
const paramsText = (n: number): string =>
  n === 0
    ? ''
    : `(${Array.from({ length: n }, (_, k) => `p${k} = ${k === 0 ? 3 : `p${k - 1} + 1`}`).join(', ')})`

const callText = ({ to, args }: Call): string =>
  `${typeof to === 'number' ? `c${to}` : to}${args.length > 0 ? `(${args.map((a) => a.text).join(', ')})` : ''}`
const ruleText = ({ cond, calls, isFastest }: Rule): string => {
  const head = cond ? `when (${cond.map((c) => c.text).join(' and ')})` : 'otherwise'
  const called = calls.map(callText).join('\n    ')
  return `  ${head} ${isFastest ? `fastest {\n    ${called}\n  }` : called}\n`
}
const choiceText = (name: string, w: Written): string =>
  `schedule mul.${name}${paramsText(w.params)} choose {\n${w.rules.map(ruleText).join('')}}\n`

/** Schedules that the first rule that holds leads to, each once; `null`: none holds. */
function evaluated(
  w: Written,
  all: readonly Written[],
  args: readonly number[],
  facts: Values,
): string[] | null {
  const params: number[] = []
  for (let k = 0; k < w.params; k++) params.push(args[k] ?? defaultOf(k, params))
  const v = { ...facts, ...Object.fromEntries(params.map((p, k) => [`p${k}`, p])) }
  for (const { cond, calls } of w.rules) {
    if (cond && !cond.every((c) => c.value(v) !== 0)) continue
    const found = calls.flatMap(({ to, args: given }) => {
      const values = given.map((a) => a.value(v))
      if (typeof to === 'number') return evaluated(all[to]!, all, values, facts) ?? []
      return [`${to}${values.length > 0 ? `(${values.join(', ')})` : ''}`]
    })
    if (found.length > 0) return [...new Set(found)]
  }
  return null
}

function decided(choice: Choice, args: readonly number[], facts: Values): string[] | null {
  try {
    return decide(dispatchCall(choice, args), (v) => facts[v.name]!).map((d) => d.selection.text)
  } catch (e) {
    if (e instanceof SptError && e.diagnostics[0]!.code === 'choose/no-match') return null
    throw e
  }
}

const facts = fc.record({ m: fc.nat(6), d: fc.nat(6), 'nnz(A)': fc.nat(6) })
const inputs = fc.array(fc.tuple(facts, fc.array(fc.nat(6), { maxLength: 2 })), {
  minLength: 8,
  maxLength: 8,
})

/** Products of choices can have too many branches. */
function elaboratedOrLarge(text: string): ReturnType<typeof elaborate> {
  try {
    return elaborate(programOf({ name: 'test.spt', text }))
  } catch (e) {
    fc.pre(!(e instanceof SptError && e.diagnostics[0]!.code === 'check/choice-size'))
    throw e
  }
}

describe('nested dispatches', () => {
  property([several, inputs])('select the same branch as nested evaluation', (all, given) => {
    const text = KERNEL + all.map((w, k) => choiceText(`c${k}`, w)).join('')
    const { choices } = elaboratedOrLarge(text)
    const [last] = all.slice(-1)
    const choice = choices.get('mul')!.get(`c${all.length - 1}`)!
    for (const [f, args] of given) {
      const own = args.slice(0, last!.params)
      expect(decided(choice, own, f)).toEqual(evaluated(last!, all, own, f))
    }
  })

  test('compute fill ratios of formats with their arguments', () => {
    const { choices } = elaborate(
      programOf({
        name: 'test.spt',
        text: `${KERNEL}
schedule mul.inner(b = 2) choose {
  when (fill_ratio(A, tiled(2 * b)) < 0.5) rows(b)
}
schedule mul.outer(c = 8) choose {
  when (m > 1) inner(c + 1)
  otherwise plain
}`,
      }),
    )
    const outer = dispatchCall(choices.get('mul')!.get('outer')!, [3])
    expect([...outer.choice.statistics.keys()]).toEqual(['fill_ratio(A, tiled(8))'])
    const of = (covered: number): string =>
      decide(outer, ({ name }) => ({ m: 2, 'fill_ratio(A, tiled(8))': covered })[name]!)[0]!.selection.text
    expect([of(0.4), of(0.6)]).toEqual(['rows(4)', 'plain'])
  })
})

const LIB = `${KERNEL}
schedule mul.auto(b = 3) choose {
  when (m > 3) fastest { rows(b); plain }
  otherwise cols(b)
}
`
const loaded = (main: string, more: Readonly<Record<string, string>> = {}): ReturnType<typeof load> => {
  const files: Record<string, string> = { 'lib.spt': LIB, 'main.spt': main, ...more }
  return load('main.spt', { read: async (path) => files[path.replace(/^\.\//, '')]! })
}
const complaints = async (main: string, more: Readonly<Record<string, string>> = {}): Promise<string[]> =>
  loaded(main, more).then(
    () => [],
    (e: SptError) => e.diagnostics.map((d) => `${d.code}: ${d.message}`),
  )

describe('extensions of imported dispatches', () => {
  property([written([1], fc.constant(0)), inputs])(
    'keep all branches of the imported dispatch, after their own',
    async (own, given) => {
      const base: Written = {
        params: 1,
        rules: [
          {
            cond: [{ text: 'm > 3', value: (v) => Number(v.m! > 3) }],
            isFastest: true,
            calls: [
              { to: 'rows', args: [{ text: 'p0', value: (v) => v.p0! }] },
              { to: 'plain', args: [] },
            ],
          },
          {
            cond: null,
            isFastest: false,
            calls: [{ to: 'cols', args: [{ text: 'p0', value: (v) => v.p0! }] }],
          },
        ],
      }
      const rules = own.rules.map(ruleText).join('').replaceAll('c0', 'auto')
      const files: Record<string, string> = {
        'main.spt': `import "lib.spt"\nschedule mul.auto extends {\n${rules}}\n`,
        'lib.spt': KERNEL + choiceText('auto', base),
      }
      const program = await loadProgram('main.spt', async (path) => files[path]!)
      const choice = elaborate(program).choices.get('mul')!.get('auto')!
      for (const [f, args] of given) {
        const b = args.slice(0, 1)
        // Without arguments, the choice that is extended has those of the extension.
        const passed = own.rules.map((r) => ({
          ...r,
          calls: r.calls.map((c) =>
            c.to === 0 && c.args.length === 0
              ? { to: 0, args: [{ text: 'p0', value: (v: Values) => v.p0! }] }
              : c,
          ),
        }))
        const expected = evaluated({ params: 1, rules: passed }, [base], b, f) ?? evaluated(base, [], b, f)
        expect(decided(choice, b, f)).toEqual(expected)
      }
      if (own.rules.some((r) => r.cond === null)) return
      const texts = choice.branches.slice(-2).map((x) => x.calls.map((c) => c.schedule.name))
      expect(texts).toEqual([['rows', 'plain'], ['cols']])
    },
  )

  test('replace it, with new branches first, and record where branches came from', async () => {
    const program = await loaded(`import "lib.spt"
schedule mul.mine { split f by 8 }
schedule mul.auto extends {
  when (d == 8) mine
  when (d == 16) fastest { mine; auto }
}
`)
    const kernel = program.kernel('mul')
    expect(kernel.dispatches).toEqual(['auto'])
    const chosen = async (m: number, d: number, ...args: number[]) =>
      (await kernel.schedule('auto', ...args).choose('cpu', { m, d })).selection
    expect(await chosen(5, 8)).toMatchObject({ text: 'mine', reason: 'd == 8', declaredBy: null })
    expect(await chosen(5, 9, 7)).toMatchObject({ text: 'rows(7)', reason: 'm > 3', declaredBy: 'mul.auto' })
    expect(await chosen(1, 9)).toMatchObject({ text: 'cols(3)', reason: 'otherwise', declaredBy: 'mul.auto' })
    expect(await chosen(5, 16)).toMatchObject({ text: 'mine', reason: 'd == 16 and m > 3', declaredBy: null })
  })

  test('are extended by importing files, in any order of imports', async () => {
    const mine =
      'import "lib.spt"\nschedule mul.mine { split f by 8 }\nschedule mul.auto extends { when (d == 8) mine }\n'
    for (const imports of ['import "lib.spt"\nimport "mine.spt"', 'import "mine.spt"\nimport "lib.spt"']) {
      const kernel = (
        await loaded(
          `${imports}\nimport { mul } from "lib.spt"\nschedule mul.auto extends { when (d == 9) rows(9) }`,
          {
            'mine.spt': mine,
          },
        )
      ).kernel('mul')
      const text = async (d: number): Promise<string> =>
        (await kernel.schedule('auto').choose('cpu', { m: 1, d })).selection.text
      expect([await text(8), await text(9), await text(7)]).toEqual(['mine', 'rows(9)', 'cols(3)'])
    }
  })

  test.each([
    [
      'schedule mul.auto extends { when (d == 8) missing }',
      'check/unknown-schedule: kernel mul has no schedule missing',
    ],
    [
      'schedule mul.other extends { otherwise plain }',
      'link/nothing-to-extend: no imported file declares a dispatch `mul.other`',
    ],
    [
      'schedule mul.rows extends { otherwise plain }',
      'link/nothing-to-extend: `mul.rows` is a schedule, not a dispatch (choose)',
    ],
    [
      'schedule mul.auto choose { otherwise plain }',
      'link/duplicate-name: schedule `mul.auto` is declared twice',
    ],
    ['schedule mul.loop choose { otherwise loop }', 'check/choice-cycle: loop refers to itself'],
    [
      'schedule mul.a choose { when (m > 1) plain otherwise b }\nschedule mul.b choose { otherwise fastest { plain; a } }',
      'check/choice-cycle: a refers to itself',
    ],
    [
      'schedule mul.auto extends { when (b == 1) auto(1, 2) }',
      'check/arguments: schedule auto is given 2 arguments',
    ],
  ])('%s', async (text, complaint) => {
    expect((await complaints(`import "lib.spt"\n${text}`))[0]).toBe(complaint)
  })

  test('of one dispatch by two independent files are ambiguous', async () => {
    const by = (d: number): string => `import "lib.spt"\nschedule mul.auto extends { when (d == ${d}) plain }`
    expect(
      await complaints('import "a.spt"\nimport "b.spt"\nimport { mul } from "lib.spt"', {
        'a.spt': by(1),
        'b.spt': by(2),
      }),
    ).toEqual(['link/duplicate-name: schedule `mul.auto` is declared twice'])
  })

  test('too many branches', async () => {
    const rules = Array.from({ length: 40 }, (_, k) => `when (d == ${k}) rows(${k + 1})`).join('\n')
    const text = `import "lib.spt"\nschedule mul.many choose { ${rules} }\nschedule mul.all choose { otherwise fastest { many; many } }`
    expect((await complaints(text))[0]).toBe(
      'check/choice-size: mul.all has 1600 branches, including called dispatches',
    )
  })
})
