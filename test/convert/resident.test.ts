/** Resident tensors in kernels, without a way through the host. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { ResidentParts } from '../../src/device.ts'
import { bindResident, convertForKernel, upload } from '../../src/device.ts'
import type { SptProgram } from '../../src/node.ts'
import { coords, dense, load, SptError } from '../../src/node.ts'
import { DEVICES, opened } from './devices.ts'

const rows = [0, 0, 0, 1, 3, 3, 4, 4, 4, 4]
const columns = [0, 2, 4, 1, 0, 3, 0, 1, 2, 4]
const A = coords(
  [5, 5],
  [rows, columns],
  Float32Array.from(rows, (_, e) => e + 1),
)
const B = dense(
  [5, 3],
  Float32Array.from({ length: 15 }, (_, k) => k + 1),
)
const C = Array.from({ length: 15 }, (_, k) =>
  rows.reduce(
    (sum, r, e) => (r === Math.floor(k / 3) ? sum + (e + 1) * (columns[e]! * 3 + (k % 3) + 1) : sum),
    0,
  ),
)

let program: SptProgram
beforeAll(async () => {
  const formats = await load('kernels/formats-composed.spt')
  program = await load('kernels/spmm.spt')
  for (const [name, f] of formats.formats) (program.formats as Map<string, typeof f>).set(name, f)
})

describe.each(DEVICES)('on $kind', ({ open }) => {
  const on = opened(open)

  test.each([
    ['bsr', [2]],
    ['sell', [2, 4]],
    ['hyb', [2, 1]],
  ] as const)('a kernel runs on a tensor converted on the device: %s', async (name, args) => {
    const k = program.kernel('spmm').as('A', name, ...args)
    const compiled = await k.build(on.device)
    const from = await upload(on.device, A)
    const made = await convertForKernel(compiled, 'A', from)
    from.free()
    const prepared = await bindResident(compiled, { A: made, B })
    await prepared.run()
    const out = await prepared.get('C')
    expect([...out.values!]).toEqual(C)
    prepared.free()
    // The converted tensor is still there.
    const again = await bindResident(compiled, { A: made, B })
    await again.run()
    expect([...(await again.get('C')).values!]).toEqual(C)
    again.free()
    made.free()
  })

  test('a tensor in another format is rejected', async () => {
    const compiled = await program.kernel('spmm').as('A', 'bsr', 2).build(on.device)
    const other = await program.kernel('spmm').as('A', 'bsr', 4).build(on.device)
    const from = await upload(on.device, A)
    const made: ResidentParts = await convertForKernel(other, 'A', from)
    await expect(bindResident(compiled, { A: made, B })).rejects.toThrow(SptError)
    from.free()
    made.free()
  })
})
