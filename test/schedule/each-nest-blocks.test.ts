/** `each nest of C as p`: one schedule for whatever loops a format makes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { agreeOnDevice, agreeOnStages, bind, expectedOf } from '../properties/agree.ts'
import { sample } from '../support/cases.ts'
import { compilationOf } from './coords/apply.ts'
import { FORMATS, KERNELS, USES } from './coords/formats.ts'
import { dataOf, only, sampleOf } from './coords/matrices.ts'

const PRODUCT = KERNELS['product with a dense matrix']!
const ROWS = `
    atomic y
    each nest of y as p {
      reorder (p.parallel, p.contiguous, p.reductions)
      fuse (p.parallel) -> r
      fuse (p.contiguous) -> c
      split r by 2 -> (ro, ri)
      split c by 2 -> (co, ci)
      reorder (ro, co, ri, ci, p.reductions)
      bind ro to block.x, co to block.y, ri to thread.y, ci to thread.x
    }`
/** Where the loops of a format depend on each other, or add to one element and to several, they are no one loop. */
const REFUSED = new Set(['schedule/not-rectangular', 'schedule/mixed-reduction'])

let gpu: Device
beforeAll(async () => {
  gpu = await createNodeWebGpu()
})
afterAll(async () => {
  await gpu.dispose()
})

function scheduled(format: string): Compilation | SptError {
  try {
    return compilationOf(FORMATS + PRODUCT, `A as ${format}\n${ROWS}`)
  } catch (e) {
    if (e instanceof SptError) return e
    throw e
  }
}

describe('roles', () => {
  test('one schedule serves most formats', () => {
    const all = USES.map((format) => [format, scheduled(format)] as const)
    const refused = all.flatMap(([f, c]) =>
      c instanceof SptError ? [`${f}: ${c.diagnostics[0]!.code}`] : [],
    )
    expect(refused).toEqual([
      'csc: schedule/not-rectangular',
      'vbr(rows, cols): schedule/not-rectangular',
      'bitmap_blocks: schedule/mixed-reduction',
      'column_lines(3): schedule/not-rectangular',
      'dia where (i == j) + csc: schedule/not-rectangular',
    ])
  })
  test.each(sample(USES, 6))('%s', async (format) => {
    const c = scheduled(format)
    if (c instanceof SptError) return expect(REFUSED).toContain(c.diagnostics[0]!.code)
    for (const data of [dataOf(5, 7, [0, 7, 8, 9, 10, 11, 12, 13, 22, 30, 33], 7), dataOf(0, 3, [], 2)]) {
      const given = sampleOf(
        only(
          data,
          c.source.buffers.map((b) => b.name),
        ),
        format.startsWith('vbr'),
      )
      const expected = expectedOf(given, c)
      agreeOnStages(c, bind(given, c), expected)
      for (const d of [createCpuDevice(), gpu]) await agreeOnDevice(d, c, bind(given, c), expected)
    }
  })
})

describe('names without a loop', () => {
  const refusal = (steps: string): string | undefined => {
    try {
      compilationOf(FORMATS + PRODUCT, `A as csr\n${steps}`)
      return undefined
    } catch (e) {
      if (e instanceof SptError) return e.diagnostics[0]!.code
      throw e
    }
  }
  test.each([
    ['each nest of B as p { split p.rows by 2 }', 'schedule/no-nest'],
    ['each nest of y as p { split p.scatter by 2 }', 'schedule/no-role'],
    ['split io by 2 -> (a, b) each nest of y as p { split p.rows by 2 }', 'schedule/several-loops'],
    ['each nest of y as p { split p.nope by 2 }', 'schedule/unknown-loop'],
    ['each nest of y as p { bind p.rows to block.x }', undefined],
  ])('%s', (steps, code) => expect(refusal(steps)).toBe(code))
})
