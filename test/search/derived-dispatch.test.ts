/** Choices that are made from measurements: their text says what their rules say, and what they lose is what they would lose. */

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { appliedName } from '../../src/ast/print/message-text.ts'
import { load } from '../../src/node.ts'
import type { Evidence, EvidenceCandidate, Values } from '../../src/search/choice/conditions.ts'
import { conditionText, lossesOf, questionsOf, whole } from '../../src/search/choice/conditions.ts'
import { type Generalisation, generalise, type Loss } from '../../src/search/choice/generalise.ts'
import { between, type Choosable, choiceText, grow, selectCandidate } from '../../src/search/choice/rules.ts'
import { dispatchTableText } from '../../src/search/choice/table-text.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { PRODUCT } from '../support/product.ts'

const PROGRAM = `
${PRODUCT}schedule product.tiled(rows = 8, cols = 4) {
  split i by rows -> (io, ii)
  split f by cols -> (fo, fi)
}
schedule product.even(by) {
  require d % by == 0
  split f by by -> (fo, fi)
}
schedule product.tuned_1 { }
`
const kernel = parseProgram(PROGRAM, 'product.spt').kernel('product')
const questions = questionsOf(kernel)

interface Known extends Choosable {
  readonly foundOn: EvidenceCandidate['foundOn']
}

const candidate = (
  k: Kernel,
  call: Choosable['call'],
  foundOn: EvidenceCandidate['foundOn'] = null,
): Known => ({
  kernel: k,
  call,
  requires: k.compilation.loops.facts ?? [],
  foundOn,
})
const called = (name: string, ...args: number[]): Known =>
  candidate(kernel.schedule(name, ...args), { name, args })

/** With and without a name, with and without what they require of sizes. */
const KNOWN: readonly Known[] = [
  candidate(kernel, null),
  called('tiled', 4, 2),
  called('tiled', 8, 4),
  called('even', 4),
  candidate(kernel.split('i', 2), null),
  candidate(kernel.schedule('even', 3), null),
]

function drawnValues(c: Choices): Values {
  const [m, n, d] = [1 + c.below(50), 1 + c.below(50), 1 + c.below(40)]
  const [longest, shortest, empty] = [c.below(30), c.below(5), c.below(m + 1)]
  const count = longest === 0 ? 0 : longest + c.below(m * n)
  return new Map<string, number>([
    ...Object.entries({ m, n, d, 'longest(j)': longest, 'shortest(j)': shortest, 'empty(j)': empty }),
    ...Object.entries({ 'count(j)': count, 'nnz(A)': count, 'segments(j)': m, 'mean(j)': count / m }),
    ...Object.entries({ cpu: 1, webgpu: 0, cuda: 0, capability: 0 }),
  ])
}

const GROUPS = ['a', 'b', 'c', 'd', 'e', 'f']

/** Times that have something to do with the data, or nothing; the kernel as written runs everywhere. */
function drawnEvidence(c: Choices): Evidence & { readonly known: readonly Known[] } {
  const groups = GROUPS.slice(0, 1 + c.below(GROUPS.length))
  const cases = Array.from({ length: groups.length + c.below(4) }, (_, k) => ({
    group: groups[k] ?? c.pick(groups),
    values: drawnValues(c),
  }))
  const known = KNOWN.slice(0, 2 + c.below(KNOWN.length - 1)).map((k, n): Known => {
    const found = n === 0 || c.below(3) === 0 ? null : new Set(groups.filter(() => c.below(2) === 0))
    return { ...k, foundOn: found && found.size > 0 ? found : null }
  })
  const measure = c.pick(questions.measures)
  const candidates = known.map(({ requires, foundOn }, k) => ({
    requires,
    foundOn,
    times: cases.map(({ values }) => {
      if (k > 0 && c.below(8) === 0) return null
      const noise = 1 + c.below(1000) / 1000 + c.below(1000) / 1e7
      return c.below(2) === 0
        ? noise
        : noise * (1 + ((values.get(measure.of) ?? 0) > 10 ? k : known.length - k))
    }),
  }))
  return { measures: questions.measures, cases, candidates, known }
}

const property = (name: string, times: number, holds: (c: Choices) => void | Promise<void>): void =>
  test(name, () =>
    fc.assert(
      fc.asyncProperty(choiceNumbers(400), async (numbers) => holds(new Choices(numbers))),
      { numRuns: runs(times) },
    ),
  )

describe('a dispatch derived from measurements', () => {
  property('round-trips as text, and selects by its rules on each case and on others', 60, async (c) => {
    const evidence = drawnEvidence(c)
    const { dispatch } = generalise(evidence, { gain: 0.001, leaves: 1 + c.below(6), groups: 1 + c.below(2) })
    const { name, text, declarations, rules } = choiceText(kernel, dispatch.rules, evidence.known)
    const again = parseProgram(`${PROGRAM}\n${text}`, 'product.spt').kernel('product')
    if (dispatch.rules.length === 1) {
      const own = evidence.known[dispatch.rules[0]!.candidate]!.kernel
      expect(again.schedule(name).toJSON()).toEqual(own.toJSON())
      return
    }
    const table = dispatchTableText({ kernel: 'product', origins: [], rules })
    const stored = `${PROGRAM}\n${declarations}schedule product.${name} choose from "t.spt"`
    const read = (await load(stored, { name: 'product.spt', read: async () => table })).kernel('product')
    for (const values of [...evidence.cases.map((e) => e.values), drawnValues(c), drawnValues(c)]) {
      const k = selectCandidate(dispatch.rules, evidence.candidates, values)!
      const { m, n, d } = Object.fromEntries(values) as Record<string, number>
      const statistics = Object.fromEntries([...values].filter(([s]) => s.includes('(') && text.includes(s)))
      const inputs = { params: { m: m!, n: n!, d: d! }, statistics }
      const chosen = await again.schedule(name).choose('cpu', ...flatInputs(inputs))
      expect((await read.schedule(name).choose('cpu', ...flatInputs(inputs))).selection.text).toBe(
        chosen.selection.text,
      )
      expect(chosen.kernel.toJSON()).toEqual(evidence.known[k]!.kernel.toJSON())
      const { call } = evidence.known[k]!
      if (call) expect(chosen.selection.text).toBe(appliedName(call.name, call.args))
    }
  })

  property('is validated leave-one-group-out', 60, (c) => {
    const evidence = drawnEvidence(c)
    const options = { gain: 0.001, leaves: 1 + c.below(6), groups: 1 + c.below(2) }
    const { dispatch, single } = generalise(evidence, options)
    expect(dispatch.heldOutLoss).toEqual(byHand(evidence, (e) => generalise(e, options).dispatch))
    expect(single.heldOutLoss).toEqual(byHand(evidence, (e) => generalise(e, options).single))
  })

  property('is not trained on its validation data', 40, (c) => {
    const evidence = drawnEvidence(c)
    const options = { gain: 0.001, leaves: 4, groups: 1 }
    const [group] = GROUPS
    // Other times there, and another candidate that was found there alone and is the best there is.
    const others = evidence.candidates.map(({ times, ...k }) => ({
      ...k,
      times: times.map((t, n) =>
        evidence.cases[n]!.group === group && t !== null ? t * (1 + c.below(100)) : t,
      ),
    }))
    const leak: EvidenceCandidate = {
      times: evidence.cases.map(() => 1e-3),
      requires: [],
      foundOn: new Set([group!]),
    }
    const made = (candidates: readonly EvidenceCandidate[]) => {
      const rest = evidence.cases.flatMap((e, n) => (e.group === group ? [] : [n]))
      const kept = candidates.flatMap((k, n) => (k.foundOn?.size === 1 && k.foundOn.has(group!) ? [] : [n]))
      const part = { cases: rest, candidates: kept }
      return grow({ ...evidence, candidates }, lossesOf({ ...evidence, candidates }), part, options)
    }
    if (evidence.cases.some((e) => e.group !== group))
      expect(made([...others, leak])).toEqual(made(evidence.candidates))
  })

  property('defers to the default schedule if it would save nothing', 60, (c) => {
    const drawn = drawnEvidence(c)
    const gain = c.below(2) * 0.01
    const cases = drawn.cases.map((e) => ({ ...e, standard: c.below(drawn.candidates.length) }))
    const found = generalise({ ...drawn, cases }, { gain })
    const losses = lossesOf({ ...drawn, cases })
    const sum = (of: readonly number[]): number => of.reduce((a, b) => a + b, 0)
    const unasked = cases.map((e, n) => losses[e.standard]![n]!).filter((l) => l < 1e6)
    expect([found.defaultLoss!.mean, found.defaultLoss!.rejected]).toEqual([
      unasked.length > 0 ? expect.closeTo(sum(unasked) / unasked.length, 9) : 0,
      cases.length - unasked.length,
    ])
    const worth = ({ heldOutLoss, fittedLoss }: Generalisation['dispatch']): number => {
      const { mean, rejected } = heldOutLoss ?? fittedLoss
      return rejected * 1e6 + mean
    }
    const stays = found.defaultLoss!.rejected * 1e6 + found.defaultLoss!.mean
    const least = Math.min(worth(found.single) + gain, stays)
    // Nothing is taken that is worse, where it was left out, than doing nothing.
    if (found.verdict === 'default') expect(stays).toBeLessThan(worth(found.single) + gain)
    else expect(worth(found[found.verdict]) + gain).toBeLessThanOrEqual(stays)
    if (found.verdict === 'single') expect(worth(found.single) + gain).toBe(least)
    // What is the best on each is never given up.
    const best = drawn.cases.map((e, n) => ({ ...e, standard: losses.findIndex((l) => l[n] === 0) }))
    expect(generalise({ ...drawn, cases: best }).verdict).toBe('default')
    expect(generalise(drawn).verdict).not.toBe('default')
  })

  property('is a single schedule if one is the best', 40, (c) => {
    const drawn = drawnEvidence(c)
    const best = c.below(drawn.candidates.length)
    const candidates = drawn.candidates.map((k, n) => ({
      ...k,
      ...(n === best ? { requires: [], foundOn: null } : {}),
      times: k.times.map((t) => (n === best ? 1 : t === null ? null : 1 + t)),
    }))
    const found = generalise({ ...drawn, candidates })
    expect([found.isBetter, found.tree, found.dispatch.fittedLoss.mean]).toEqual([
      false,
      { kind: 'leaf', candidate: best },
      0,
    ])
  })

  property('splits where the split saves most', 40, (c) => {
    const evidence = drawnEvidence(c)
    const losses = lossesOf(evidence)
    const sums = (cases: readonly number[]): number =>
      Math.min(...losses.map((l) => cases.reduce((n, k) => n + l[k]!, 0)))
    const all = whole(evidence).cases
    const groups = 1 + c.below(3)
    const isEnough = (cases: readonly number[]): boolean =>
      new Set(cases.map((k) => evidence.cases[k]!.group)).size >= groups
    const tree = grow(evidence, losses, whole(evidence), { gain: 1e-6, leaves: 2, groups })
    const ways = evidence.measures.flatMap(({ of, per }) => {
      const at = all.map((k) => {
        const [a, b] = [of, per].map((s) => (s === null ? 1 : evidence.cases[k]!.values.get(s)))
        return b === 0 ? 0 : a! / b!
      })
      return at.map((t) => [all.filter((k) => at[k]! > t), all.filter((k) => !(at[k]! > t))])
    })
    const least = Math.min(
      sums(all),
      ...ways.filter((w) => w.every(isEnough)).map(([a, b]) => sums(a!) + sums(b!)),
    )
    const found =
      tree.kind === 'leaf'
        ? sums(all)
        : all.reduce((n, k) => {
            const values = evidence.cases[k]!.values
            const { of, per } = tree.condition.measure
            const above = values.get(of)! > tree.condition.above * (per === null ? 1 : values.get(per)!)
            const leaf = above ? tree.then : tree.otherwise
            return n + (leaf.kind === 'leaf' ? losses[leaf.candidate]![k]! : Number.NaN)
          }, 0)
    expect(found).toBeCloseTo(least, 4)
  })
})

/** What is lost on each group by what is made of the others alone, and of what was found on them. */
function byHand(evidence: Evidence, make: (e: Evidence) => Generalisation['dispatch']): Loss | null {
  const losses: (number | null)[] = []
  for (const group of new Set(evidence.cases.map((e) => e.group))) {
    const others = evidence.cases.filter((e) => e.group !== group)
    if (others.length === 0) return null
    const candidates = evidence.candidates
      .filter(({ foundOn }) => foundOn === null || [...foundOn].some((g) => g !== group))
      .map((k) => ({ ...k, times: k.times.filter((_, n) => evidence.cases[n]!.group !== group) }))
    const kept = evidence.candidates.filter(
      ({ foundOn }) => foundOn === null || [...foundOn].some((g) => g !== group),
    )
    const { rules } = make({ measures: evidence.measures, cases: others, candidates })
    for (const [n, e] of evidence.cases.entries()) {
      if (e.group !== group) continue
      const k = selectCandidate(rules, candidates, e.values)
      const time = k === undefined ? null : kept[k]!.times[n]!
      const best = Math.min(...evidence.candidates.map((x) => x.times[n] ?? Number.POSITIVE_INFINITY))
      losses.push(time === null ? null : Math.log(time / best))
    }
  }
  const run = losses.filter((l) => l !== null)
  return {
    mean: expect.closeTo(run.reduce((n, l) => n + l, 0) / Math.max(1, run.length), 9),
    rejected: losses.length - run.length,
  }
}

describe('conditions', () => {
  test('are evaluable on the kernel, from data and from numbers', () => {
    const texts = questions.measures.map((m) => conditionText({ measure: m, above: 2 }))
    for (const text of [
      'd > 2',
      'longest(j) > 2',
      'nnz(A) > 2',
      'longest(j) > 2 * mean(j)',
      'mean(j) > 2 * n',
      'cuda',
    ])
      expect(texts).toContain(text)
    const A = {
      kind: 'coords' as const,
      shape: [3, 4],
      coords: [Int32Array.from([0, 0, 2, 2]), Int32Array.from([0, 2, 1, 3])],
      values: null,
      dtype: 'f32' as const,
    }
    const values = questions.valuesOn('cpu', { tensors: { A }, params: { d: 7 } })
    expect(Object.fromEntries(values)).toEqual({
      ...{ m: 3, n: 4, d: 7, 'nnz(A)': 4, cpu: 1, webgpu: 0, cuda: 0, capability: 0 },
      ...{
        'longest(j)': 2,
        'mean(j)': 4 / 3,
        'empty(j)': 1,
        'count(j)': 4,
        'shortest(j)': 0,
        'segments(j)': 3,
      },
    })
  })

  test('thresholds between numbers are short, and never the upper one', () => {
    const positive = fc.double({ min: 1e-6, max: 1e9, noNaN: true })
    fc.assert(
      fc.property(positive, positive, (a, b) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)]
        const t = between(low, high)
        if (low === high) return t === null
        return t !== null && t >= low && t < high
      }),
      { numRuns: runs(500) },
    )
    expect([between(12, 500), between(3, 4), between(0, 1), between(12, 13)]).toEqual([80, 3, 0.5, 12])
  })
})
