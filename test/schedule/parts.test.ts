/** Schedules of parts: blocks for each of them, one launch for all, partial results; against the reference. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { printStep } from '../../src/schedule/steps/step-data.ts'
import { agreeOnDevice, agreeOnStages, bind, expectedOf } from '../properties/agree.ts'
import { sample } from '../support/cases.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'
import { diagnosticOf } from '../support/refusal.ts'
import { compilationOf, type Data } from './coords/apply.ts'
import { FORMATS, KERNELS, REFUSED, USES } from './coords/formats.ts'
import { dataOf, only, sampleOf } from './coords/matrices.ts'

const MATRICES: readonly Data[] = [
  dataOf(5, 7, [0, 7, 8, 9, 10, 11, 12, 13, 22, 30, 33], 7),
  dataOf(6, 3, [], 3),
  dataOf(3, 4, [5], 5),
  dataOf(0, 3, [], 2),
]

/** Stages II and III, where threads that race are found, and devices. */
async function agree(c: Compilation, devices: readonly Device[], lists = false): Promise<void> {
  const buffers = c.source.buffers.map((b) => b.name)
  for (const data of MATRICES) {
    const sample = sampleOf(only(data, buffers), lists)
    const expected = expectedOf(sample, c)
    agreeOnStages(c, bind(sample, c), expected)
    for (const device of devices) await agreeOnDevice(device, c, bind(sample, c), expected)
  }
}

const PRODUCT = KERNELS['product with a dense matrix']!
const LISTED = `
format listed_ell(w) over (i, j) {
  axis io = sparse_variable(i)
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format by_row_length over (i, j) {
  bucket i by length into 1, 4, 16 as width { part listed_ell(width) }
}
`
const threads = (rows: string): string => `
  each part of A as p {
    split p.io by ${rows} -> (o, r)
    split p.f by 2 -> (fo, fi)
    reorder (o, fo, r, fi, p.jo)
    bind o to block.x, fo to block.y, r to thread.y, fi to thread.x
  }
  merge parts of A`

const SCHEDULES: Readonly<Record<string, string>> = {
  'atomic updates, caches': `
    A as hyb(2, 2)
    atomic y
    each part of A as p {
      split p.io by 4 / p.width -> (o, r)
      split sum.f by 2 -> (fo, fi)
      reorder (o, fo, r, fi, p.jo)
      bind o to block.x, fo to block.y, r to thread.y, fi to thread.x
      cache_write y at fi in register
      unroll p.jo
    }
    merge parts of A`,
  'partial results': `A as hyb(2, 1)\ncombine y${threads('2')}`,
  'rows that no two parts share': `A as by_row_length${threads('p.width')}`,
  'a copy of the part in registers': `
    A as by_row_length
    each part of A as p {
      reorder (p.io, p.f, p.jo)
      split p.io by 2 -> (o, r)
      cache_read p at p.jo in register -> own
      bind o to block.x, r to thread.x
    }
    merge parts of A`,
  'positions of all pieces': `
    A as pieces_ell(2)
    fuse (io, p) -> q
    combine y
    split q by 4 -> (o, t)
    bind o to block.x, t to thread.x`,
  'an initialisation for all': `
    A as bsr(2) where (density(2) >= 0.75) + csr
    atomic y
    bind io_bsr to block.x, io_csr to block.x
    merge (sum_bsr, sum_csr)`,
  'different grids': `
    A as hyb(1, 1)
    atomic y
    split io_w1 by 2 -> (o, r)
    reorder (o, sum_w1.f, r, jo_w1)
    bind o to block.x, sum_w1.f to block.y, r to thread.x
    bind io_w2 to block.x
    merge parts of A`,
}
/** Parts that were stored in parts again. */
const AGAIN: Readonly<Record<string, string>> = {
  'a part of a part': `
    A as two_sides
    A_p1 as bsr(2) where (density(2) >= 0.5) + csr
    atomic y
    each part of A_p1 as p {
      split sum.f by 2 -> (fo, fi)
      bind p.io to block.x, fi to thread.x
    }
    merge parts of A_p1
    bind io_p0 to block.x`,
  'all parts as they are now': `
    A as hyb(2, 1)
    A_p1_w1 as bsr(2)
    A_p0_w2 as bsr(2) where (density(2) >= 0.5) + ell
    atomic y
    each part of A as p {
      split sum.f by 2 -> (fo, fi)
      cache_write y at fi in register -> own
      bind p.io to block.x, p.fi to thread.x
    }
    merge parts of A`,
  'a format and steps in one block': `
    A as ranges(2)
    each part of A as p {
      p as rows_ell(2)
      split p.io by 8 / p.w -> (o, r)
      unroll p.jo
    }
    atomic y
    each part of A as p { bind p.o to block.x, p.r to thread.x }
    merge parts of A`,
  'blocks inside of blocks': `
    A as two_sides
    each part of A as q {
      q as ranges(2)
      each part of q as p { fuse (p.io, p.jo) -> e }
    }
    atomic y
    each part of A as p {
      split p.e by 4 -> (o, t)
      bind o to block.x, t to thread.x
    }
    merge parts of A`,
}
/** Of outputs that share the structure. */
const SAMPLED: Readonly<Record<string, string>> = {
  'copies of the part, loops of an earlier block': `
    A as hyb(2, 1)
    each part of A as p { fuse (p.io, p.jo) -> e }
    each part of A as p {
      split p.e by 4 -> (o, t)
      cache_write D at t in register
      bind o to block.x, t to thread.x
    }
    merge parts of A`,
  'parts by their names': `
    A as bsr(2) where (density(2) >= 0.75) + csr
    bind io_bsr to block.x, ii_bsr to thread.y, ji_bsr to thread.x
    cache_write D_bsr at ji_bsr in register
    bind io_csr to block.x
    cache_write D_csr at jo_csr in register`,
}
let gpu: Device
beforeAll(async () => {
  gpu = await createNodeWebGpu()
})
afterAll(async () => {
  await gpu.dispose()
})

describe('schedules of parts compute the same', () => {
  test.each(sample(Object.entries(SCHEDULES), 5))('%s', async (_, steps) => {
    const c = compilationOf(FORMATS + LISTED + PRODUCT, steps)
    await agree(c, [createCpuDevice(), gpu])
  })

  test.each(sample(Object.entries(AGAIN), 3))('%s', async (_, steps) => {
    const c = compilationOf(FORMATS + PRODUCT, steps)
    await agree(c, [createCpuDevice(), gpu])
  })

  test.each(Object.entries(SAMPLED))('%s', async (_, steps) => {
    const c = compilationOf(FORMATS + KERNELS['sampled product']!, steps)
    await agree(c, [createCpuDevice(), gpu])
  })

  test.skipIf(noNvcc)('the CUDA code compiles', () => {
    const texts = sample(Object.values(SCHEDULES), 4).flatMap((steps) =>
      compilationOf(FORMATS + LISTED + PRODUCT, steps)
        .texts('cuda')
        .map((t) => t.text),
    )
    expect(compileTogether(texts)).toBe('')
  })
})

describe('one launch', () => {
  const launches = (steps: string): number =>
    compilationOf(FORMATS + LISTED + PRODUCT, steps).plan.steps.filter((s) => s.kind === 'launch').length

  test('contains all parts; disjoint rows need no atomics', () => {
    expect(launches(SCHEDULES['rows that no two parts share']!)).toBe(1)
    const c = compilationOf(FORMATS + LISTED + PRODUCT, SCHEDULES['rows that no two parts share']!)
    expect(print2(c.loops)).not.toContain('atomic')
  })

  test('is rejected if parts combine, with a hint', () => {
    const steps = `A as two_sides
      bind io_p0 to block.x, io_p1 to block.x
      merge parts of A`
    expect(() => compilationOf(FORMATS + PRODUCT, steps)).toThrow(/both combine into y/)
    try {
      compilationOf(FORMATS + PRODUCT, steps)
    } catch (e) {
      expect((e as SptError).diagnostics[0]!.hint).toMatch(/atomic y or combine y first/)
    }
  })
})

/** What a block for parts says that does not fit. */
describe('rejected', () => {
  const NEST = KERNELS['nest of reductions']!
  test.each([
    ['p.ii', PRODUCT, 'unroll p.ii', 'schedule/unknown-loop: part A_w1 (rows_ell(1)) has no loop ii'],
    [
      'a loop of several iterations',
      NEST.replace('iterate peak [j] as R', 'iterate peak [j, f] as RR').replace(
        'iterate total [j] as R',
        'iterate total [j, f] as RR',
      ),
      'unroll p.f',
      'schedule/ambiguous-loop: 2 iterations of part A_w1 (rows_ell(1)) have a loop f: peak_w1, total_w1',
    ],
    ['p outside', PRODUCT, '}\nsplit p.io by 2\neach part of A as q { unroll q.jo', 'there is no loop p.io'],
  ])('%s', (_, kernel, steps, message) => {
    const text = `A as hyb(1, 1)\neach part of A as p { ${steps} }`
    expect(() => compilationOf(FORMATS + kernel, text)).toThrow(message)
  })
})

test('updates without conflicts are not atomic', () => {
  const text = (steps: string): string => compilationOf(FORMATS + PRODUCT, steps).texts('cuda')[0]!.text
  expect(text('atomic y\nbind i to block.x')).not.toContain('atomicAdd')
  expect(text('A as coo\natomic y\nbind io to block.x')).toContain('atomicAdd')
})

describe('without a schedule, threads give equal results', () => {
  const names = ['product with a dense matrix', 'max per row', 'sampled product', 'nest of reductions']
  describe.each(names)('%s', (name) => {
    const uses = USES.filter((use) => !REFUSED[name]?.has(use))
    test.each(sample(uses, 12))('%s', async (use) => {
      const c = compilationOf(FORMATS + KERNELS[name]!, `A as ${use}`).parallel()
      await agree(c, [], use.includes('rows,'))
    })
  })
})

describe('names of parts', () => {
  const refusal = (steps: string): string =>
    diagnosticOf(() => compilationOf(FORMATS + PRODUCT, steps))?.code ?? 'nothing was refused'

  test('labels as suffixes of new names; constants of formats', () => {
    const { trace } = compilationOf(
      FORMATS + PRODUCT,
      `A as hyb(1, 1)
      each part of A as p {
        fuse (p.io, p.jo) -> q
        split p.q by 3 * p.width -> (o, s)
        split p.f by 2
        unroll sum.fi
      }`,
    ).state
    expect(trace.map((s) => JSON.stringify({ ...s, span: undefined }))).toEqual([
      '{"kind":"split","loop":"q_w1","by":3,"into":["o_w1","s_w1"]}',
      '{"kind":"split","loop":"sum_w1.f","by":2}',
      '{"kind":"unroll","loop":"sum_w1.fi"}',
      '{"kind":"split","loop":"q_w2","by":6,"into":["o_w2","s_w2"]}',
      '{"kind":"split","loop":"sum_w2.f","by":2}',
      '{"kind":"unroll","loop":"sum_w2.fi"}',
    ])
  })

  test('parts of parts', () => {
    const { trace } = compilationOf(
      FORMATS + PRODUCT,
      `A as two_sides
      A_p1 as bsr(2) where (density(2) >= 0.5) + rows_ell(2)
      each part of A_p1 as p { split sum_p1.f by 2 -> (fo, fi) }
      each part of A as p {
        split p.io by 4 -> (o, r)
        unroll sum.jo by 2
      }`,
    ).state
    expect(trace.map((s) => printStep(s))).toEqual([
      'split sum_p1_bsr.f by 2 -> (fo_p1_bsr, fi_p1_bsr)',
      'split sum_p1_rows_ell.f by 2 -> (fo_p1_rows_ell, fi_p1_rows_ell)',
      'split io_p0 by 4 -> (o_p0, r_p0)',
      'unroll sum_p0.jo_p0 by 2',
      'split io_bsr by 4 -> (o_p1_bsr, r_p1_bsr)',
      'unroll sum_p1_bsr.jo_bsr by 2',
      'split io_rows_ell by 4 -> (o_p1_rows_ell, r_p1_rows_ell)',
      'unroll sum_p1_rows_ell.jo_rows_ell by 2',
    ])
  })

  test('parts of another schedule', () => {
    const steps = `A as two_sides
      A_p1 as ranges(2)`
    const once = compilationOf(
      `${FORMATS}${PRODUCT}\nschedule k.rows { each part of A_p1 as p { unroll p.jo by 2 } }`,
      `${steps}\nuse rows`,
    )
    const whole = compilationOf(FORMATS + PRODUCT, `${steps}\neach part of A_p1 as p { unroll p.jo by 2 }`)
    expect(once.state.trace.map((s) => printStep(s))).toEqual(whole.state.trace.map((s) => printStep(s)))
    expect(once.state.trace).toHaveLength(2)
  })

  test('from TypeScript: the current parts', () => {
    const k = parseProgram(FORMATS + PRODUCT)
      .kernel('k')
      .as('A', 'hyb', 2, 1)
    const parts = k.as('A_p1_w1', 'bsr(2) where (density(2) >= 0.5) + csr').parts('A')
    expect(parts.map((p) => [p.label, p.buffer, p.loop('io'), p.nest('sum'), p.constants.width])).toEqual([
      ['p0_w1', 'A_p0_w1', 'io_p0_w1', 'sum_p0_w1', 1],
      ['p0_w2', 'A_p0_w2', 'io_p0_w2', 'sum_p0_w2', 2],
      ['p1_w1_bsr', 'A_p1_w1_bsr', 'io_bsr', 'sum_p1_w1_bsr', 1],
      ['p1_w1_csr', 'A_p1_w1_csr', 'io_csr', 'sum_p1_w1_csr', 1],
      ['p1_w2', 'A_p1_w2', 'io_p1_w2', 'sum_p1_w2', 2],
    ])
    expect(parts[2]!.loop('f')).toBe('sum_p1_w1_bsr.f')
  })

  test('unknown parts are rejected', () => {
    expect(refusal('each part of A as p { unroll p.io }')).toBe('schedule/no-parts')
    expect(refusal('merge parts of A')).toBe('schedule/no-parts')
    expect(refusal('A as hyb(1, 1)\neach part of A as p { split p.io by p.height }')).toBe(
      'schedule/no-constant',
    )
    expect(refusal('A as csr\nmerge parts of A')).toBe('schedule/nothing-to-merge')
    expect(refusal('A as hyb(1, 1)\nmerge parts of A')).toBe('schedule/not-on-blocks')
    expect(refusal('A as hyb(1, 1)\nsplit sum_w1.f by 2\neach part of A as p { fuse (p.io, p.jo) }')).toBe(
      'nothing was refused',
    )
  })
})
