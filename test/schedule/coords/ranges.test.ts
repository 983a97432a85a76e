/** Kernels over parts of a partition: each runs over the coordinates of its own range. */
import { describe, expect, test } from 'vitest'
import type { Kernel1 } from '../../../src/ir/coordinates/stage1.ts'
import { print1, printExpr1 } from '../../../src/ir/print/print-stage1.ts'
import type { Stmt as Stmt2 } from '../../../src/ir/statements/loops.ts'
import { walkStmts } from '../../../src/ir/statements/tree.ts'
import { lowerToPositions } from '../../../src/lower/pipeline.ts'
import { verify1 } from '../../../src/verifiers/stage1.ts'
import { pair } from './apply.ts'
import { FORMATS, KERNELS } from './formats.ts'

const SUM = KERNELS['sum per row']!

const applied = (text: string, steps: string): string => {
  const { kernel } = pair(FORMATS + text, steps)
  verify1(kernel)
  return print1(kernel)
}

/** Iterations alone: what stands after the buffers. */
const body = (text: string): string => text.slice(text.indexOf('  iterate'))

describe('ranges of a dimension', () => {
  const rows = (k: Kernel1): readonly Stmt2[] => lowerToPositions(k).body

  test('rows are counted from the start of their range, and need no condition to be rows', () => {
    const text = applied(SUM, 'A as ranges(3)')
    expect(text).toContain('axis io_p0 = dense_fixed(ceildiv(m, 3))')
    expect(text).toContain('axis io_p1 = dense_fixed(min(ceildiv(m, 3) * 2, m) - ceildiv(m, 3))')
    expect(text).toContain('axis io_p2 = dense_fixed(m - min(ceildiv(m, 3) * 2, m))')
    expect(body(text)).toBe(`  iterate sum_p0 [io_p0, jo_p0] as SR {
    y[io_p0] += A_p0[io_p0, jo_p0]
  }
  iterate sum_p1 [io_p1, jo_p1] as SR {
    y[io_p1 + ceildiv(m, 3)] += A_p1[io_p1, jo_p1]
  }
  iterate sum_p2 [io_p2, jo_p2] as SR {
    y[io_p2 + min(ceildiv(m, 3) * 2, m)] += A_p2[io_p2, jo_p2]
  }
}`)
    const conditions: string[] = []
    walkStmts(rows(pair(FORMATS + SUM, 'A as ranges(3)').kernel), (s) => {
      if (s.kind === 'if') conditions.push(printExpr1(s.cond))
    })
    expect(conditions).toEqual([])
  })

  test('of sizes that are constants', () => {
    const text = SUM.replace('k(m: size, n: size)', 'k(n: size)').replace('dense_fixed(m)', 'dense_fixed(7)')
    const k = pair(FORMATS + text, 'A as ranges(3)').kernel
    const extents = k.axes.flatMap((a) =>
      /^io/.test(a.name) && a.kind === 'dense_fixed' ? [printExpr1(a.extent)] : [],
    )
    expect(extents).toEqual(['3', '3', '1'])
    expect(JSON.stringify(rows(k))).not.toContain('"kind":"if"')
  })

  test('blocks across a border still test whether their rows are there', () => {
    expect(body(applied(SUM, 'A as block_ranges(2)'))).toContain(
      'where ((io_p1 + ceildiv(m, 2) / 2) * 2 + ii_p1 < m and',
    )
  })

  test('columns of dense lines, too', () => {
    expect(applied(SUM, 'A as column_lines(2)')).toContain('axis jo_p1 = dense_fixed(n - ceildiv(n, 2))')
  })
})
