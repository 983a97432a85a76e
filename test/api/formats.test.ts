/** Formats from calls: in kernels, part by part, and without kernels. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { coords, type Device, dense, devices, type Kernel, load, type SptProgram } from '../../src/node.ts'
import { CHOICES, FORMATS, KERNELS } from '../bind/programs.ts'
import { apply, inputs, matrix, type Sample, samples } from '../bind/support.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { complaint } from './support.ts'

const SCHEDULES = `
schedule multiply.blocks(b) {
  A as bsr(b) where (density(b) >= 0.5) + csr
}
schedule multiply.parts {
  A as hyb(2, 2)
  atomic C
  each part of A as p {
    split p.io by 4 / p.width -> (outer, inner)
    bind outer to block.x, inner to thread.x
  }
  merge parts of A
}
`
const A = coords(
  [5, 7],
  [
    [0, 0, 0, 1, 2, 2, 2, 2, 2, 4],
    [5, 1, 3, 0, 0, 1, 2, 3, 6, 6],
  ],
  Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
)
let program: SptProgram
let k: Kernel
let device: Device
beforeAll(async () => {
  program = await load(FORMATS + KERNELS + SCHEDULES)
  k = program.kernel('multiply')
  device = await devices.cpu()
})
afterAll(() => device.dispose())

describe('in kernels', () => {
  test('a format as a schedule writes it', () => {
    const written = k.as('A', 'bsr(2) where (density(2) >= 0.5) + csr')
    expect(written.show(1)).toBe(k.schedule('blocks', 2).show(1))
    expect(written.trace).toEqual(['A as bsr(2) where (density(2) >= 0.5) + csr'])
    expect(k.schedule('blocks', 2).trace).toEqual(written.trace)
    expect(k.as('A', 'bsr(2)').show(1)).toBe(k.as('A', 'bsr', 2).show(1))
    expect(k.as('A', 'vbr(r, c)').trace).toEqual(k.as('A', 'vbr', 'r', 'c').trace)
  })

  test('traces travel as JSON', () => {
    for (const x of [...CHOICES.map((c) => apply(k, c)), k.schedule('blocks', 3), k.schedule('parts')]) {
      const again = k.replay(JSON.parse(JSON.stringify(x)))
      expect(again.trace).toEqual(x.trace)
      expect(again.show(2)).toBe(x.show(2))
      expect(x.undo().trace).toEqual(x.trace.slice(0, -1))
    }
  })

  test('steps for a part continue from the given kernel', () => {
    const stored = k.as('A', 'hyb', 2, 2)
    for (const other of [k, k.as('A', 'csr'), stored.undo()])
      expect(refusal(() => stored.each('A', () => other))).toMatchObject({
        code: 'api/argument',
        expected: 'the kernel that is given, with further steps',
      })
  })

  test('steps for each part are those of a schedule', () => {
    const each = k
      .as('A', 'hyb', 2, 2)
      .atomic('C')
      .each('A', (x, p) =>
        x
          .split(p.loop('io'), 4 / p.constants.width!, [p.name('outer'), p.name('inner')])
          .bind({ [p.name('outer')]: 'block.x', [p.name('inner')]: 'thread.x' }),
      )
      .mergeParts('A')
    expect(each.trace).toEqual(k.schedule('parts').trace)
    expect(each.trace.at(-1)).toMatch(/^merge \(/)
    const parts = k.as('A', 'hyb', 2, 1).parts('A')
    expect(parts.map((p) => p.label)).toEqual(['p0_w1', 'p0_w2', 'p1_w1', 'p1_w2'])
    expect(parts.map((p) => p.buffer)).toEqual(['A_p0_w1', 'A_p0_w2', 'A_p1_w1', 'A_p1_w2'])
    expect(parts.map((p) => p.format)).toEqual(['rows_ell(1)', 'rows_ell(2)', 'rows_ell(1)', 'rows_ell(2)'])
    expect(parts.map((p) => p.constants.width)).toEqual([1, 2, 1, 2])
    expect(parts[1]!.loop('jo')).toBe('jo_p0_w2')
    expect(parts[1]!.nest('multiply')).toBe('multiply_p0_w2')
  })

  test('misuse is reported', async () => {
    const loose = k as never as Record<string, (...xs: unknown[]) => unknown>
    expect(await complaint(() => k.parts('A'))).toBe('schedule/no-parts: no step before stores A in a format')
    expect(await complaint(() => k.as('A', 'csr').parts('B'))).toMatch(/^schedule\/no-parts/)
    expect(await complaint(() => loose.each!('A'))).toBe(
      'api/argument: the callback of each cannot be undefined',
    )
    expect(await complaint(() => (k.as('A', 'csr') as never as typeof loose).each!('A', () => 5))).toBe(
      'api/argument: the result of the callback cannot be 5',
    )
    expect(await complaint(() => k.as('A', 'csr').mergeParts('A'))).toMatch(/^schedule\/nothing-to-merge/)
    expect(await complaint(() => k.as('A', 'csr +'))).toMatch(/^parse\//)
    expect(await complaint(() => k.as('A', 'csr + nothing'))).toMatch(/^check\/unknown-format/)
    expect(await complaint(() => k.as('A', 'nothing'))).toMatch(/^api\/unknown-format/)
  })
})

describe('with data', () => {
  test('formats of prepared kernels', async () => {
    const compiled = await k.as('A', 'hyb', 1, 2).build(device)
    const prepared = await compiled.bind({ A, d: 2 }, { seed: 1 })
    expect(prepared.formats).toMatchObject([
      {
        tensor: 'A',
        formats: ['hyb(1, 2)'],
        slots: 11,
        stored: 10,
        padding: 1,
        // 3 pieces of 1, none of 2, 2 of 4: where the pieces begin and end, their rows, columns and values.
        bytes: 4 * (2 + 3 + 3 + 3) + 4 * 2 + 4 * (2 + 2 + 8 + 8),
        parts: [
          { label: 'w1', buffer: 'A_w1', format: 'rows_ell(1)', rows: 3, slots: 3, stored: 3, padding: 0 },
          { label: 'w2', buffer: 'A_w2', format: 'rows_ell(2)', rows: 0, slots: 0, stored: 0, padding: 0 },
          { label: 'w4', buffer: 'A_w4', format: 'rows_ell(4)', rows: 2, slots: 8, stored: 7, padding: 1 },
        ],
      },
    ])
    expect(prepared.formats[0]!.buildTime).toBeGreaterThan(0)
    expect(prepared.formats[0]!.provenance).toContain(
      'bucket i by length into 1, 2, 4 split: parts are disjoint and hold every coordinate (by construction)',
    )
    prepared.free()
  })

  test('writing values', async () => {
    const compiled = await k.as('A', 'hyb', 1, 1).build(device)
    const B = dense([7, 1], [1, 1, 1, 1, 1, 1, 1])
    const prepared = await compiled.bind({ A, B })
    const sums = async (): Promise<number[]> => {
      await prepared.run()
      return [...(await prepared.get('C')).values!]
    }
    expect(await sums()).toEqual([6, 4, 35, 0, 10])
    await prepared.set('A', [1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    expect(await sums()).toEqual([3, 1, 5, 0, 1])
    await prepared.set(
      'A',
      coords(
        [5, 7],
        [
          [2, 2],
          [6, 0],
        ],
        [20, 2],
      ),
    )
    expect(await sums()).toEqual([0, 0, 22, 0, 0])
    await prepared.set('B', [2, 2, 2, 2, 2, 2, 2])
    expect(await sums()).toEqual([0, 0, 44, 0, 0])
    // What is bound is what was written: a later comparison takes it.
    expect((await prepared.verify()).problems).toEqual([])
    expect([...A.values!]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    for (const [call, said] of [
      [() => prepared.set('A', [1, 2]), 'bind/values-length: A is given 2 values'],
      [() => prepared.set('B', [1, 2]), 'bind/values-length: B is given 2 values'],
      [() => prepared.set('C', [1, 2]), 'bind/not-input: C is not an input of kernel multiply'],
      [
        () => prepared.set('A', coords([5, 7], [[3], [3]], [1])),
        'bind/absent-coordinate: entry 0 of the new values of A is at (3, 3), where A holds nothing',
      ],
    ] as const)
      expect(await complaint(call)).toBe(said)
    prepared.free()
  })
})

describe('without kernels', () => {
  const sums = (columns: readonly Int32Array[], values: ArrayLike<number>): Map<string, number> => {
    const out = new Map<string, number>()
    columns[0]!.forEach((_, e) => {
      const at = columns.map((c) => c[e]).join()
      out.set(at, (out.get(at) ?? 0) + values[e]!)
    })
    // A sum of 0 is the fill of a block.
    for (const [at, x] of out) if (x === 0) out.delete(at)
    return out
  }
  const dataOf = (choice: (typeof CHOICES)[number], s: Sample) => {
    const { A: _, B: __, ...data } = inputs('multiply', choice, s).tensors!
    return data
  }

  test('to a format, from format to format, and back', () => {
    for (const [c, choice] of CHOICES.entries()) {
      const format = program.format(...choice)
      const other = CHOICES[(c + 5) % CHOICES.length]!
      fc.assert(
        fc.property(samples, (s) => {
          const tensor = matrix(s)
          const wanted = sums(tensor.coords, s.values)
          const converted = format.convert(tensor, dataOf(choice, s))
          const back = converted.toCoords()
          expect(sums(back.coords, back.values!), `${choice}`).toEqual(wanted)
          const next = program
            .format(...other)
            .convert(converted, dataOf(other, s))
            .toCoords()
          expect(sums(next.coords, next.values!), `${choice} to ${other}`).toEqual(wanted)
          const arrays = format.fromParts([s.m, s.n], converted.parts, dataOf(choice, s)).toCoords()
          expect(arrays).toEqual(back)
        }),
        { numRuns: runs(8) },
      )
    }
  })

  test('the cost of conversion', () => {
    const f = program.format('hyb', 1, 2)
    expect(f.text).toBe('hyb(1, 2)')
    expect(f.parts.map((p) => p.label)).toEqual(['w1', 'w2', 'w4'])
    expect(f.provenance.nodes).toMatchObject([{ disjoint: 'construction', cover: 'construction' }])
    expect(f.describe(A)).toMatchObject({ slots: 11, stored: 10, padding: 1 })
    const [w1, , w4] = f.convert(A).parts
    expect(w1!.tensor).toMatchObject({
      shape: [5, 7],
      arrays: { io_w1: { indices: Int32Array.of(1, 2, 4) }, jo_w1: { indices: Int32Array.of(0, 6, 6) } },
      values: Float32Array.of(4, 9, 10),
    })
    expect([...w4!.tensor.values!]).toEqual([2, 3, 1, 0, 5, 6, 7, 8])
  })

  test('misuse is reported', async () => {
    const loose = (f: unknown) => f as Record<string, (...xs: unknown[]) => unknown>
    const csr = loose(program.format('csr'))
    expect(await complaint(() => program.format('csx'))).toMatch(/^api\/unknown-format/)
    expect(await complaint(() => program.format('csr', 3))).toMatch(/^format\/arguments/)
    expect(await complaint(() => csr.convert!(5))).toMatch(/^api\/argument/)
    expect(await complaint(() => csr.convert!(coords([3], [[1]], [1])))).toMatch(/^bind\/shape/)
    expect(await complaint(() => csr.convert!(coords([1, 1], [[0], [0]], [1]), { foo: [1] }))).toMatch(
      /^api\/unknown-option: csr has no option foo/,
    )
    expect(await complaint(() => csr.fromParts!([3, 3], []))).toMatch(/^api\/argument/)
    expect(await complaint(() => program.format('vbr').convert(A))).toMatch(/^bind\/missing-list/)
    expect(await complaint(() => program.format('chosen').convert(A))).toMatch(/^bind\/missing-set/)
    expect(await complaint(() => program.format('band(1, 1)').convert(A))).toMatch(/^format\/leak/)
  })
})
