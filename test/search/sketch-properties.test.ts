/** Sketches of generated kernels: every point computes what the reference computes, or is refused with a code. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { resultOrError, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { samplePoint } from '../../src/search/spaces/points.ts'
import { sketches } from '../../src/search/spaces/sketches.ts'
import { agreeInCases, caseOf, numbers, parameters } from '../properties/property-cases.ts'
import { Choices } from '../support/choices.ts'
import { sketching } from '../support/sketch-gen.ts'

/** A tensor of 3 or 4 dimensions, stored in any way, with some of them summed up. */
function manyDimensions(c: Choices): string {
  const names = ['i', 'j', 'l', 'q'].slice(0, 3 + c.below(2))
  const kept = names.filter(() => c.chance(50))
  const kinds = ['sparse_variable', 'dense_variable', 'dense_fixed']
  const axes = names.map((n, k) => {
    const kind = c.pick(kinds)
    const under = k === 0 || kind === 'dense_fixed' ? '' : `${names[k - 1]}, `
    return `  axis ${n} = ${k === 0 ? 'dense_fixed' : kind}(${under}s${n})\n  axis ${n}d = dense_fixed(s${n})`
  })
  // A dense dimension beside them; one that is kept can go on outside of what is summed up.
  const wide = c.chance(50)
  const [extra, order] = wide ? [['f'], c.chance(50) ? ['f', ...names] : [...names, 'f']] : [[], names]
  const result = [...kept, ...extra]
  const over = [...kept.map((n) => `${n}d`), ...extra]
  return `kernel k(${[...names, 'f'].map((n) => `s${n}: size`).join(', ')}) {
${axes.join('\n')}
  axis f = dense_fixed(sf)
  axis one = dense_fixed(1)
  buffer T: f32[${names.join(', ')}] in
  buffer M: f32[${over.join(', ') || 'one'}] out
  iterate v [${order.join(', ')}] as ${order.map((n) => (result.includes(n) ? 'S' : 'R')).join('')} { M[${result.join(', ') || '0'}] += T[${names.join(', ')}] }
}`
}

test('no point of a cpu sketch for sums over tensors of 3 and 4 dimensions is rejected', () => {
  let made = 0
  fc.assert(
    fc.property(numbers, (choices) => {
      const c = new Choices(choices)
      const text = manyDimensions(c)
      const space = sketches(parseProgram(text).kernel(), { device: 'cpu', formats: {} })
      for (let k = 0; k < 4; k++) {
        const point = samplePoint(space, () => c.below(1000) / 1000)!
        const refused = resultOrError(() => space.kernel(point))
        if (refused instanceof SptError)
          throw new Error(`${text}\n${JSON.stringify(point)}\n${refused.message}`)
        made++
      }
    }),
    parameters(30),
  )
  expect(made).toBeGreaterThan(0)
})

for (const device of ['cpu', 'webgpu', 'cuda'] as const)
  test(`points of sketches for ${device} do not change results`, async () => {
    const cpu = createCpuDevice()
    await agreeInCases(cpu, (choices) => caseOf(choices, 0, undefined, sketching(device)), 8)
  })
