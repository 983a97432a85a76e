/** Errors that leave the API have the texts that they are about, whichever call they come from. */

import { beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { ErrorSources } from '../../src/api/programs/error-sources.ts'
import * as onDevice from '../../src/device.ts'
import * as api from '../../src/node.ts'
import { Workspace } from '../../src/search.ts'
import { errorOf, MUL } from './support.ts'

const TEXT = `${MUL}
format narrow(w) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
schedule mul.wrong { split zz by 2 -> (a, b) }
schedule mul.even { require d % 4 == 0 }
schedule mul.two { A as narrow(2) }
schedule mul.auto choose {
  when (d == 3) wrong
  otherwise even
}
schedule mul.all choose by search {
  b in 2, 4
  split zz by b -> (a, c)
}
kernel sums(m: size, n: size) {
  axis p = dense_fixed(m)
  axis q = dense_fixed(n)
  buffer X: f32[p, q] in
  buffer y: f32[p] out
  iterate sum [p, q] as SR { y[p] += X[p, q] }
}
format listed over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
schedule sums.few { X as listed live in place capacity 1 }
`
const A = api.coords(
  [2, 4],
  [
    [0, 0, 0, 1],
    [0, 1, 2, 3],
  ],
  [1, 2, 3, 4],
)
const inputs = (d: number) => ({ tensors: { A, B: new Float32Array(4 * d) }, params: { d } })
const full = { tensors: { X: api.dense([1, 3], Float32Array.of(1, 2, 3)) } }

let p: api.SptProgram
let device: api.Device
beforeAll(async () => {
  p = await api.load(TEXT, { name: 'mul.spt' })
  device = await api.devices.cpu()
})
const k = () => p.kernel('mul')
const compiled = (name: string) => k().schedule(name).build(device)

/** By the call: what is wrong, and what of the text that is said to be about. */
const CASES: Readonly<Record<string, readonly [code: string, about: string, () => unknown]>> = {
  schedule: ['schedule/unknown-loop', 'zz', () => k().schedule('wrong')],
  apply: ['schedule/unknown-loop', 'zz', () => k().apply(k().steps('wrong'))],
  'a choice': [
    'schedule/unknown-loop',
    'zz',
    () =>
      k()
        .schedule('auto')
        .choose('cpu', ...flatInputs(inputs(3))),
  ],
  'compile of a choice': [
    'schedule/unknown-loop',
    'zz',
    async () => (await k().build(device)).bind(...flatInputs(inputs(3))),
  ],
  bind: [
    'run/requirement',
    'd % 4 == 0',
    async () => (await compiled('even')).bindOnHost(...flatInputs(inputs(3))),
  ],
  estimate: [
    'run/requirement',
    'd % 4 == 0',
    async () => (await compiled('even')).estimateBytes(...flatInputs(inputs(3))),
  ],
  prepare: ['bind/width', 'axis jo', async () => (await compiled('two')).bind(...flatInputs(inputs(4)))],
  run: ['bind/width', 'axis jo', async () => (await compiled('two'))(...flatInputs(inputs(4)))],
  'a workspace': [
    'bind/width',
    'axis jo',
    async () => new Workspace(device, k(), ...flatInputs(inputs(4))).bind((await compiled('two')) as never),
  ],
  'a run': [
    'run/overflow',
    'X as listed live in place capacity 1',
    async () => (await p.kernel('sums').schedule('few').build(device))(...flatInputs(full)),
  ],
  'a format': ['bind/width', 'axis jo', () => p.format('narrow', 2).convert(A)],
  'a format with a text': ['check/arguments', 'narrow', () => p.format('narrow(1, 2)')],
  'a space': [
    'schedule/unknown-loop',
    'zz',
    async () =>
      (
        await k()
          .space('all')
          .bind('cpu', ...flatInputs(inputs(4)))
      ).kernel({ b: 2 }),
  ],
}

describe('errors of the API', () => {
  test.each(Object.keys(CASES))('of %s show the source', async (name) => {
    const [code, about, work] = CASES[name]!
    const e = await errorOf(work)
    const [d] = e.diagnostics
    expect(d!.code).toBe(code)
    const { source, start, end } = d!.span!
    expect(e.sources!.get(source)!.text.slice(start, end)).toContain(about)
  })

  test('source passed to a call is shown next to that of the program', async () => {
    const e = await errorOf(() => k().as('A', 'narrow(1, 2)'))
    expect([...e.sources!.keys()].sort()).toEqual(['format', 'mul.spt'])
    expect(api.render(e.diagnostics, e.sources!)).toContain('narrow(1, 2)')
  })

  describe('with declarations from another source of the same name', () => {
    const shown = async (code: string, about: string, work: (other: api.SptProgram) => unknown) => {
      const other = await api.load(`// Another text, in which all stands elsewhere.\n${TEXT}`, {
        name: 'mul.spt',
      })
      const e = await errorOf(() => work(other))
      expect(e.diagnostics[0]!.code).toBe(code)
      const { start, end } = e.diagnostics[0]!.span!
      expect(e.sources!.get('mul.spt')!.text.slice(start, end)).toContain(about)
      const line = other.sources.get('mul.spt')!.text.slice(0, start).split('\n').length
      expect(api.render(e.diagnostics, k().sources)).toContain(`mul.spt:${line}:`)
    }

    test('steps', () =>
      shown('schedule/unknown-loop', 'zz', (other) => k().apply(other.kernel('mul').steps('wrong'))))

    test('steps that are rejected at binding', () =>
      shown('run/requirement', 'd % 4 == 0', async (other) =>
        (await k().apply(other.kernel('mul').steps('even')).build(device)).bind(...flatInputs(inputs(3))),
      ))

    test('formats', () =>
      shown('bind/width', 'axis jo', async (other) =>
        (await k().as('A', other.formats.get('narrow')!, 2).build(device)).bind(...flatInputs(inputs(4))),
      ))
  })

  test('every public class reports them', () => {
    const classes = Object.values<unknown>({ ...api, ...onDevice }).filter(
      (x): x is abstract new () => object => typeof x === 'function' && /^class\b/.test(`${x}`),
    )
    const others = classes.filter((c) => !(c.prototype instanceof ErrorSources)).map((c) => c.name)
    // What is resident has no program; errors are what is told.
    expect(others.sort()).toEqual(['InternalError', 'ResidentParts', 'SptError'])
  })
})
