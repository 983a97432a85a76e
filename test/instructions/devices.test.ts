/** Generated tests of declarations on the devices that are here: right texts pass, wrong ones are found. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { type Device, devices, instructionTest } from '../../src/node.ts'

const load = (js: string, wgsl: string): string => `
instr load4(D: f32[4] in register, S: f32[4] in global) {
  iterate copy [i] as S {
    D[i] = S[i]
  }
  js \`${js}\`
  wgsl \`${wgsl}\`
}
instr dot4(C: f32[1] in register, A: f32[1, 4] in global, B: f32[1, 4] in register) {
  iterate dot [c, k] as SR {
    C[c] += A[c, k] * B[c, k]
  }
  js \`for (let q = 0; q < 4; q++) $C[0] += $A[$A.index(0, 0) + q] * [$B[0], $B[1], $B[2], $B[3]][q]\`
  wgsl \`$C[0] += dot(vec4f($A[$A.index(0, 0)], $A[$A.index(0, 1)], $A[$A.index(0, 2)], $A[$A.index(0, 3)]), vec4f($B[0], $B[1], $B[2], $B[3]));\`
}
instr add2(D: i32[2] in global, R: i32[2] in register) atomic {
  iterate add [i] as S {
    D[i] += R[i]
  }
  js \`$D[$D.index(0)] += $R[0]; $D[$D.index(1)] += $R[1]\`
}`

const line = (order: readonly number[], end: string): string =>
  order.map((from, to) => `$D[${to}] = $S[$S.index(${from})]${end}`).join(' ')
const program = (order: readonly number[]) =>
  parseProgram(load(order.map((f, t) => `$D[${t}] = $S[$S.index(${f})]`).join('; '), line(order, ';')))
const right = program([0, 1, 2, 3])
const wrong = program([0, 2, 1, 3])

let here: Device[] = []
beforeAll(async () => {
  here = [await devices.cpu(), await devices.webgpu()]
})
afterAll(async () => {
  for (const d of here) await d.dispose()
})

const problems = async (name: string, from: typeof right, device: Device): Promise<readonly string[]> => {
  const { kernel, inputs } = instructionTest(from.instructions.get(name)!)
  const compiled = await kernel.build(device)
  const prepared = await compiled.bind(...flatInputs(inputs))
  const { problems: found } = await prepared.verify()
  prepared.free()
  compiled.release()
  return found
}

describe.each([
  ['cpu', 0],
  ['webgpu', 1],
] as const)('on %s', (_, k) => {
  test('implementations that match their body pass', async () => {
    expect(await problems('load4', right, here[k]!)).toEqual([])
    expect(await problems('dot4', right, here[k]!)).toEqual([])
  })

  test('a wrong implementation is detected, with coordinates', async () => {
    const [found] = await problems('load4', wrong, here[k]!)
    expect(found).toMatch(/D\b/)
    expect(found).toMatch(/\d/)
  })
})

test('concurrent atomic updates of one element are tested', async () => {
  expect(await problems('add2', right, here[0]!)).toEqual([])
  await expect(problems('add2', right, here[1]!)).rejects.toThrow(/add2 has no text for wgsl/)
})
