/** Where one nest combines something into every element of a buffer, once, it stores it and nothing is filled before. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { coords, type Device, devices } from '../../src/node.ts'
import { integers } from '../support/kernels.ts'

const TEXT = `
format blocks(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer X: f32[i, f] in
  buffer Y: f32[jd, f] in
  buffer C: f32[i, j] out
  iterate dot [i, j, f] as SSR { C[i, j] += X[i, f] * Y[j, f] }
}
schedule k.fits {
  C as blocks(4)
  fuse (io, jo) -> e
  require m % 4 == 0
  require n % 4 == 0
  bind e to block.x, ii to thread.y, ji to thread.x
  cache_write C at ji in register
}
schedule k.shares {
  C as blocks(4)
  fuse (io, jo) -> e
  require m % 4 == 0
  require n % 4 == 0
  split e by 3 -> (o, t)
  bind o to block.x, t to thread.y, ii to thread.x
  cache_write C at ji in register
}
schedule k.rest {
  C as blocks(4)
  fuse (io, jo) -> e
  bind e to block.x, ii to thread.y, ji to thread.x
  cache_write C at ji in register
}
schedule k.twice {
  C as blocks(4)
  fuse (io, jo) -> e
  require m % 4 == 0
  require n % 4 == 0
  split f by 2 -> (fo, fi)
  bind e to block.x, ii to thread.y, ji to thread.x
  cache_write C at fo in register
}
`
const program = parseProgram(TEXT, 'k.spt')
const launches = (schedule: string): number =>
  program
    .kernel()
    .schedule(schedule)
    .compilation.plan.steps.filter((s) => s.kind === 'launch').length

test.each(['fits', 'shares'])('%s stores', (schedule) => {
  expect(launches(schedule)).toBe(1)
})
test.each(['rest', 'twice'])('%s fills', (schedule) => {
  const { steps } = program.kernel().schedule(schedule).compilation.plan
  expect(steps.length).toBeGreaterThan(1)
})

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  beforeAll(async () => {
    device = await devices[kind]()
  })
  afterAll(() => device.dispose())

  test.each(['fits', 'shares', 'rest', 'twice'])('%s is correct', async (schedule) => {
    const [rows, columns] = [
      [0, 0, 1, 5, 5, 7, 11],
      [1, 7, 4, 0, 3, 9, 15],
    ]
    const j = coords([12, 16], [rows, columns], null)
    const inputs = { tensors: { j, X: integers(12 * 5, 1), Y: integers(16 * 5, 2) }, params: { d: 5 } }
    const compiled = await program.kernel().schedule(schedule).build(device)
    const v = await (await compiled.bind(...flatInputs(inputs))).verify()
    expect(v.problems).toEqual([])
    expect(v.maxAbsoluteError).toBe(0)
    compiled.release()
  })
})
