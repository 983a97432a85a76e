/** Elements that several threads hold, and what lanes tell each other: on the software GPU, whose subgroups are of 4. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { verifyPass } from '../../src/api/stages/stage-verifier.ts'
import { instructionTest } from '../../src/instruction-tests/instruction-test.ts'
import { interpretPlan } from '../../src/interpret/stage3.ts'
import { type Device, devices, load } from '../../src/node.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { wgslErrors } from '../support/wgsl-valid.ts'

const LANES = `
memory lanes: f32[4] in register of 4 threads {
  element (lane, slot) -> (lane)
}
memory every: f32[1] in register of 4 threads replicated {
  element (lane, slot) -> (slot)
}
memory all: f32[4] in register of 4 threads replicated {
  element (lane, slot) -> (slot)
}
memory pairs: f32[8] in register of 4 threads replicated {
  element (lane, slot) -> (slot / 2 * 4 + lane % 2 * 2 + slot % 2)
}
memory tile: f32[4, 4] in register of 4 threads {
  element (lane, slot) -> (slot / 2 * 2 + lane / 2, lane % 2 * 2 + slot % 2)
}
memory tile_rows: f32[4] in register of 4 threads replicated {
  element (lane, slot) -> (slot * 2 + lane / 2)
}
memory other_rows: f32[4] in register of 4 threads replicated {
  element (lane, slot) -> (slot * 2 + lane % 2)
}
memory tile_columns: f32[4] in register of 4 threads replicated {
  element (lane, slot) -> (lane % 2 * 2 + slot)
}
instr sum(D: f32[1] in every, S: f32[4] in lanes) by 4 threads {
  iterate sum [i, k] as SR { D[i] += S[k] }
  wgsl needs subgroups, subgroup_size(4) \`$D[0] += subgroupAdd($S[0]);\`
}
instr gather(D: f32[4] in all, S: f32[4] in lanes) by 4 threads {
  iterate gather [k] as S { D[k] = S[k] }
  wgsl needs subgroups, lanes(4) \`$D[0] = subgroupShuffle($S[0], 0u); $D[1] = subgroupShuffle($S[0], 1u); $D[2] = subgroupShuffle($S[0], 2u); $D[3] = subgroupShuffle($S[0], 3u);\`
}
instr forgets(D: f32[1] in every, S: f32[4] in lanes) by 4 threads {
  iterate sum [i, k] as SR { D[i] += S[k] }
  wgsl needs subgroups, subgroup_size(4) \`$D[0] += subgroupShuffleXor($S[0], 1u) + $S[0];\`
}
instr wide(D: f32[1] in every, S: f32[4] in lanes) by 4 threads {
  iterate sum [i, k] as SR { D[i] += S[k] }
  wgsl needs subgroups, subgroup_size(4096) \`$D[0] += subgroupAdd($S[0]);\`
}`

const KERNEL = `
kernel rows(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] }
}
kernel scale(m: size) {
  axis i = dense_fixed(m)
  buffer A: f32[i] in
  buffer y: f32[i] inout
  iterate body [i] as S { y[i] += A[i] * 2 }
}
kernel weighted(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer r: f32[i] in
  buffer c: f32[j] in
  buffer y: f32[i, j] out
  iterate body [i, j] as SS { y[i, j] = A[i, j] * r[i] + c[j] }
}
schedule rows.lanes {
  require n % 4 == 0
  split i by 1 -> (io, ii)
  split j by 4 -> (jo, jr)
  reorder (io, jo, ii, jr)
  bind io to block.x
  cache_write y at io in every
  cache_read A at jo in lanes
  tensorize sum.ii with sum
}
schedule scale.pairs {
  split i by 8 -> (io, ir)
  bind io to block.x
  cache_read A at io in pairs
  cache_write y at io in pairs
}`
const program = parseProgram(LANES + KERNEL)

describe('elements that several threads hold', () => {
  test('are computed by each, and written by one', () => {
    const kernel = program.kernel('scale').schedule('pairs')
    for (const m of [8, 21, 1]) {
      const A = Array.from({ length: m }, (_, k) => k)
      const y = Array.from({ length: m }, () => 100)
      const plan = kernel.compilation.observe(verifyPass)
      const buffers = new Map([
        ['A', A],
        ['y', y],
      ])
      interpretPlan(plan, buffers, new Map([['m', m]]))
      expect(y).toEqual(A.map((a) => 100 + 2 * a))
    }
    const [module] = kernel.emit('cuda')
    // Lanes 0 and 1 hold all that 2 and 3 hold.
    expect(module!.text).toMatch(/= \(int\)threadIdx\.x \/ 2 == 0;/)
    expect(module!.text).toContain('__launch_bounds__(4)')
  })

  const weighted = (rows: string) =>
    parseProgram(`${LANES}${KERNEL}
schedule weighted.tiles {
  tile (i, j) by (8, 4) -> (io, jo, ir, jr)
  bind io to block.y, jo to block.x
  cache_read A at jo in tile
  cache_read r at jo in ${rows}
  cache_read c at jo in tile_columns
  cache_write y at jo in tile
}`)
      .kernel('weighted')
      .schedule('tiles')

  test('combine with elements of a tile in the same thread', () => {
    for (const [m, n] of [
      [8, 4],
      [13, 7],
    ] as const) {
      const A = Array.from({ length: m * n }, (_, k) => k % 11)
      const r = Array.from({ length: m }, (_, k) => k + 1)
      const c = Array.from({ length: n }, (_, k) => 100 * k)
      const y = new Array<number>(m * n).fill(Number.NaN)
      interpretPlan(
        weighted('tile_rows').compilation.plan,
        new Map(Object.entries({ A, r, c, y })),
        new Map(Object.entries({ m, n })),
      )
      expect(y).toEqual(A.map((a, k) => a * r[Math.floor(k / n)]! + c[k % n]!))
    }
    expect(() => weighted('other_rows').emit('cuda')).toThrow(
      /elements in tile and in other_rows are held by different threads/,
    )
  })

  test('have one owning thread each', () => {
    const owners = ['every', 'all', 'pairs'].map((m) => program.memories.get(m)!)
    expect(owners.map((m) => m.size)).toEqual([1, 4, 4])
    expect(owners.every((m) => m.owner !== undefined)).toBe(true)
    expect(program.memories.get('lanes')!.owner).toBeUndefined()
  })
})

describe('instructions of lanes', () => {
  let device: Device
  beforeAll(async () => {
    device = await devices.webgpu()
  })
  afterAll(() => device.dispose())

  const problems = async (name: string): Promise<readonly string[]> => {
    const { kernel, inputs } = instructionTest(program.instructions.get(name)!)
    const compiled = await kernel.build(device)
    const prepared = await compiled.bind(...flatInputs(inputs))
    const { problems: found } = await prepared.verify()
    prepared.free()
    compiled.release()
    return found
  }

  test('match their bodies, and a mismatch is detected', async () => {
    expect(device.features.has('lanes(4)')).toBe(true)
    for (const name of ['sum', 'gather']) {
      const run = problems(name)
      if (device.features.has('subgroup_size(4)')) expect(await run).toEqual([])
      else await run.catch(() => {})
    }
    if (device.features.has('subgroup_size(4)')) expect(await problems('forgets')).not.toEqual([])
  })

  test('of other subgroups are rejected', async () => {
    await expect(problems('wide')).rejects.toThrow(
      /device\/no-instruction: wide needs subgroup_size\(4096\), which .* does not have/,
    )
  })

  test('in a schedule', async () => {
    if (!device.features.has('subgroup_size(4)')) return
    const compiled = await program.kernel('rows').schedule('lanes').build(device)
    const prepared = await compiled.bind({ m: 7, n: 12 }, { seed: 2 })
    expect((await prepared.verify()).problems).toEqual([])
    expect(compiled.program.plan.texts[0]!.text).toContain('subgroupAdd')
    prepared.free()
    compiled.release()
  })
})

test('the declared ones are valid WGSL and CUDA', async () => {
  const { instructions } = await load('kernels/instructions/lanes.spt')
  const cuda: string[] = []
  for (const [name, instr] of instructions) {
    const { kernel } = instructionTest(instr)
    if (instr.texts.some((t) => t.target === 'wgsl'))
      expect([name, await wgslErrors(kernel.emit('wgsl')[0]!.text)]).toEqual([name, []])
    if (instr.texts.some((t) => t.target === 'cuda') && !name.startsWith('ldmatrix')) {
      const own = name.replaceAll(/\W/g, '_')
      cuda.push(`namespace ${own}_ns {\n${kernel.emit('cuda')[0]!.text.replaceAll('test_', `${own}_`)}\n}`)
    }
  }
  if (!noNvcc) expect(compileCuda([cuda.join('\n')])).toBe('')
})
