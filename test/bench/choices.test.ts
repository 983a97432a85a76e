/** Candidates whose schedule is chosen by data. */
import { expect, test } from 'vitest'
import { randomBlocks, rowsOf } from '../../bench/gpu/blocks.ts'
import { fieldOf } from '../../bench/gpu/candidates.ts'
import { inputs, OurDevice, structured } from '../../bench/gpu/ours.ts'
import { dense, devices } from '../../src/node.ts'

const SIZE = 32

test('what is chosen is brought into its format on the device, each list of arguments into its own', async () => {
  const device = new OurDevice(await devices.cpu())
  const expected: number[][] = []
  const found: number[][] = []
  for (const b of [16, 32]) {
    const { standard, candidates } = fieldOf(`block-sparse-${b}`, [], { b })
    const candidate = candidates.find((c) => c.text === standard)!
    expect([candidate.schedule, candidate.args]).toEqual(['auto', [b]])
    const { csr, bits } = rowsOf(randomBlocks(SIZE, b, 0.5, 3))
    const asked = await device.ready(candidate)
    expect(asked.open).toBe(true)
    const [A, B] = inputs(asked.source)
    const first = structured(asked.source, [SIZE, SIZE], { ...csr }, bits, 'f16')
    // The unit matrix.
    const unit = new Uint16Array(SIZE * SIZE)
    for (let k = 0; k < SIZE; k++) unit[k * SIZE + k] = 0x3c00
    const rest = { [B!.name]: dense([SIZE, SIZE], unit, 'f16') }
    const ready = await device.decided(asked, { [A!.name]: first, ...rest })
    expect(ready.open).toBe(false)
    const built = await device.build(ready, first)
    const run = await device.prepare(ready, built, first, rest)
    expect(run.facts).toMatchObject({ chosen: `cpu(${b})`, because: 'cpu' })
    expect(Object.keys(run.facts)).toContain('build ms')
    found.push(Array.from(await run.values(run.output.name), Number))
    const rows = new Array<number>(SIZE * SIZE).fill(0)
    for (let r = 0; r < SIZE; r++)
      for (let e = csr.indptr[r]!; e < csr.indptr[r + 1]!; e++) rows[r * SIZE + csr.indices[e]!] = bits[e]!
    expected.push(rows)
    run.free()
    built.parts?.free()
    // Asked again, it is compiled already.
    expect((await device.decided(asked, { [A!.name]: first, ...rest })).compiled).toBe(ready.compiled)
  }
  expect(found).toEqual(expected)
  await device.close()
})
