/** Every function of expressions on every device, within the errors that the reference allows. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MATH, MATH_FNS } from '../../src/ir/values/math.ts'
import { devices, load } from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import type { Device } from '../../src/runtime/device.ts'
import { SEED } from '../support/cases.ts'

let all: readonly Device[]
beforeAll(async () => {
  all = [await devices.cpu(), await devices.webgpu()]
})
afterAll(async () => {
  for (const d of all) await d.dispose()
})

/** Of every magnitude that does not overflow all functions, of both signs, and close to 0, 1 and -1. */
const reals = (): number[] => {
  const source = new Random(SEED)
  const random = (): number => source.next()
  const wide = Array.from({ length: 400 }, () => (random() < 0.5 ? -1 : 1) * 2 ** (random() * 36 - 30))
  const near = [0, 1, -1].flatMap((x) => Array.from({ length: 100 }, () => x + (random() - 0.5) * 2 ** -8))
  return [0, -0, 1, -1, ...wide, ...near]
}

const ARRAYS = { f32: Float32Array, f64: Float64Array, i32: Int32Array } as const

test.each(MATH_FNS)('%s', async (fn) => {
  const { arity, type } = MATH[fn]
  const xs = reals()
  for (const device of all)
    for (const t of type === 'bits' ? (['i32'] as const) : (['f32', 'f64'] as const)) {
      if (t === 'f64' && device.kind === 'webgpu') continue
      const kernel = (
        await load(`kernel each(n: size) {
  axis i = dense_fixed(n)
  buffer x: ${t}[i] in
  buffer y: ${t}[i] in
  buffer out: ${t}[i] out
  iterate body [i] as S { out[i] = ${fn}(${['x[i]', 'y[i]'].slice(0, arity).join(', ')}) }
}`)
      ).kernel()
      const values = ARRAYS[t].from(type === 'bits' ? xs.map((v) => v * 2 ** 24) : xs)
      const compiled = await kernel.build(device)
      const prepared = await compiled.bind({ x: values, y: values.toReversed() })
      await prepared.run()
      const { problems, undecided } = await prepared.verify()
      expect([device.kind, t, problems]).toEqual([device.kind, t, []])
      expect(undecided, `${device.kind} ${t}`).toBeLessThan(xs.length / 20)
      prepared.free()
      compiled.release()
    }
})
