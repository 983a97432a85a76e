/**
 * Several iterators over one axis: after a step on coordinates each stands under the iterator that it stood under, or the step
 * is refused. The sums tell all coordinates of a visit apart.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../../src/api/programs/program.ts'
import { SptError } from '../../../src/ast/diagnostics/diagnostic.ts'
import { reference } from '../../../src/reference/index.ts'
import { bindInputs } from '../../../src/run/bind/index.ts'
import { referenceInputs } from '../../../src/run/bind/results/reference-inputs.ts'
import type { CoordStep } from '../../../src/schedule/coordinates/steps.ts'
import { agreeOnStages } from '../../properties/agree.ts'
import { parameters } from '../../properties/property-cases.ts'
import { runs, scaled } from '../../support/cases.ts'
import { Choices, choiceNumbers } from '../../support/choices.ts'

const KINDS = ['sparse_variable(P, N)', 'sparse_fixed(P, N, 2)', 'dense_fixed(P, N)'] as const

interface DrawnIter {
  readonly name: string
  readonly axis: string
}

interface Drawn {
  readonly text: string
  readonly iters: readonly DrawnIter[]
}

/** An iteration in which any axis may be iterated twice, in any order that has parents first. */
function drawn(c: Choices): Drawn {
  const joined = c.chance(30)
  const axes = [
    { name: 'a0', parent: '', kind: c.pick(['dense_fixed(m)', 'sparse_variable(m)']) },
    { name: 'a1', parent: 'a0', kind: c.pick(KINDS).replace('P', 'a0').replace('N', 'n') },
    { name: 'a2', parent: 'a1', kind: c.pick(KINDS).replace('P', 'a1').replace('N', 'p') },
    { name: 'b0', parent: '', kind: 'dense_fixed(n)' },
    { name: 'b1', parent: 'b0', kind: 'sparse_variable(b0, m)' },
  ].slice(0, joined ? 5 : c.pick([2, 3]))
  const iters: DrawnIter[] = []
  const wanted = [...axes, ...axes.filter(() => c.chance(60))]
  while (wanted.length > 0 && iters.length < 7) {
    const ready = wanted.filter((a) => a.parent === '' || iters.some((x) => x.axis === a.parent))
    const axis = c.pick(ready)
    wanted.splice(wanted.indexOf(axis), 1)
    const first = iters.every((x) => x.axis !== axis.name)
    iters.push({ axis: axis.name, name: first ? axis.name : `v${iters.length}` })
  }
  const inner = c.chance(30) ? c.below(iters.length) : 0
  const [outer, rest] = [iters.slice(0, inner), iters.slice(inner)]
  const list = (xs: readonly DrawnIter[]): string =>
    xs.map((x) => (x.name === x.axis ? x.name : `${x.name} in ${x.axis}`)).join(', ')
  const sum = `C[] += ${iters.map((x, k) => `(${x.name} * ${k + 2} + ${2 * k + 1})`).join(' * ')}`
  const pairs = rest.filter((x) => x.axis === 'b0')
  const others = rest.filter((x) => x.axis === 'a1')
  const when = joined && pairs.length > 0 && others.length > 0
  const body = when ? `if (${c.pick(pairs).name} == ${c.pick(others).name}) { ${sum} }` : sum
  const nest = `iterate it [${list(rest)}] as ${'R'.repeat(rest.length)} { ${body} }`
  return {
    iters,
    text: `kernel k(m: size, n: size, p: size) {
  ${axes.map((a) => `axis ${a.name} = ${a.kind}`).join('\n  ')}
  buffer C: i32[] out
  iterate zero [] { C[] = 0 }
  ${outer.length > 0 ? `iterate around [${list(outer)}] as ${'R'.repeat(outer.length)} { ${nest} }` : nest}
}`,
  }
}

function stepOf(c: Choices, iters: readonly DrawnIter[]): CoordStep {
  const left = iters.map((x) => x.name)
  const take = (n: number): string[] =>
    Array.from({ length: Math.min(n, left.length) }, () => left.splice(c.below(left.length), 1)[0]!)
  const kind = c.pick(['reorder', 'reorder', 'fuse', 'attach'] as const)
  if (kind === 'attach') {
    const [under, over] = [iters.filter((x) => x.axis === 'b1'), iters.filter((x) => x.axis === 'a1')]
    if (under.length > 0) return { kind, loop: c.pick(under).name, to: c.pick(over).name }
  }
  return { kind: kind === 'attach' ? 'reorder' : kind, loops: take(c.pick([2, 2, 3])) }
}

test('every iterator keeps its parent', () => {
  const done = { reorder: 0, fuse: 0, attach: 0 }
  fc.assert(
    fc.property(fc.noBias(choiceNumbers(60)), (choices) => {
      const c = new Choices(choices)
      const { text, iters } = drawn(c)
      const source = parseProgram(text).kernel().compilation
      let compilation = source
      const steps: CoordStep[] = []
      for (let k = 0; k < 4; k++) {
        const step = stepOf(c, iters)
        try {
          const next = compilation.onCoords(step)
          void next.loops
          compilation = next
        } catch (e) {
          if (e instanceof SptError) continue
          throw new Error(`${e instanceof Error ? e.stack : e}\n${text}\n${JSON.stringify([...steps, step])}`)
        }
        steps.push(step)
        if (step.kind !== 'as' && step.kind !== 'mask' && step.kind !== 'drop') done[step.kind]++
      }
      const bound = bindInputs(compilation.kernel, { params: { m: 3, n: 4, p: 3 }, seed: c.below(1000) })
      try {
        agreeOnStages(
          compilation,
          bound,
          reference(compilation.source, referenceInputs(compilation.source, bound)).buffers,
        )
      } catch (e) {
        throw new Error(`${e instanceof Error ? e.message : e}\n${text}\n${JSON.stringify(steps)}`)
      }
    }),
    // Few cases fuse: 64 are needed in short runs, too.
    { ...parameters(64), numRuns: Math.max(64, runs(64)) },
  )
  expect(done.reorder).toBeGreaterThan(scaled(20))
  expect(done.fuse).toBeGreaterThan(0)
})
