/**
 * Sums into a narrow output in the type that it asks for: whatever the steps, partial sums are rounded nowhere but at the
 * end. Data are integers whose sums f32 has and f16 has not.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { coords, type Device, dense, devices, load } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { agreeOnAll, agreeOnDevice } from '../properties/agree.ts'
import { parameters } from '../properties/property-cases.ts'
import { sample } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await devices.webgpu()
})
afterAll(() => webgpu.dispose())

const COMPRESSED = 'fuse (i, j) -> e split e by 3 -> (o, s)'
const COLUMNS = 'split it.j by 4 -> (jo, ji)'
/** Steps by name. */
const SCHEDULES: Readonly<Record<string, string>> = {
  plain: '',
  csr: 'A as csr',
  csc: 'A as csc',
  coo: 'A as coo',
  blocks: 'A as bsr(2)',
  wide_blocks: 'A as bsr(4)',
  masked_blocks: 'A as bsr_masked(2)',
  strips: 'A as panels(2, 2)',
  parts: 'A as hyb(1, 1)',
  cached: 'cache_write y at it.i in register -> yr',
  cached_inside: `${COLUMNS} cache_write y at jo in register -> yr`,
  factored: `${COLUMNS} rfactor ji -> yp`,
  factored_blocks: 'A as bsr(2) rfactor ji -> yp',
  factored_twice: `${COLUMNS} split ji by 2 -> (jm, jl) rfactor jm -> yp rfactor jl -> yq`,
  factored_cached: `${COLUMNS} reorder (i, ji, jo) rfactor ji -> yp cache_write yp at ji in register`,
  lanes: `${COLUMNS} bind i to block.x, ji to thread.x`,
  atomic: `${COMPRESSED} atomic y bind o to block.x, s to thread.x`,
  segments: `${COMPRESSED} accumulate y over s`,
  carried: `${COMPRESSED} accumulate y over s -> K`,
  carried_atomic: `${COMPRESSED} atomic y bind o to block.x accumulate y over s`,
}

/** Of a kernel whose next statement goes on with the sums. */
const CONTINUED = ['plain', 'csr', 'cached_inside', 'factored']

const text = (role: string, more: boolean): string => `
import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"
kernel sum(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer y: f16[i] ${role} accumulate f32
  iterate it [i, j] as SR { y[i] += A[i, j] }
  ${more ? 'iterate more [i, j] as SR { y[i] += 1.0 - A[i, j] }' : ''}
}
${Object.entries(SCHEDULES)
  .filter(([name]) => !more || CONTINUED.includes(name))
  .map(([name, steps]) => `schedule sum.${name} { ${steps} }`)
  .join('\n')}`

const data = (c: Choices) => {
  const [m, n] = [1 + c.below(5), 1 + c.below(12)]
  const at: (readonly [number, number])[] = []
  for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) if (c.chance(70)) at.push([i, j])
  // Odd above 2048: each is halfway between what f16 has.
  const values = at.map(() => 2049 + 2 * c.below(900))
  return coords([m, n], [at.map(([i]) => i), at.map(([, j]) => j)], values, 'f32')
}

for (const [role, more] of [
  ['out', false],
  ['inout', false],
  ['out', true],
] as const) {
  const program = await load(text(role, more))
  const kernel = program.kernel()
  // Others in every run.
  test.each(sample(more ? CONTINUED : Object.keys(SCHEDULES), 24))(
    `${role}${more ? ', continued' : ''}: %s`,
    async (name) => {
      const k = kernel.schedule(name)
      const own = k.parallel().compilation
      await fc.assert(
        fc.asyncProperty(choiceNumbers(100), async (numbers) => {
          const c = new Choices(numbers)
          const A = data(c)
          const [m] = A.shape as [number, number]
          const inputs = {
            tensors: {
              A,
              ...(role === 'inout' ? { y: dense([m], Array<number>(m).fill(2048), 'f32') } : {}),
            },
          }
          await agreeOnAll(k.compilation, inputs)
          const bound = bindInputs(own.kernel, inputs)
          const expected = reference(own.source, referenceInputs(own.source, bound)).buffers
          await agreeOnAll(own, inputs)
          await agreeOnDevice(webgpu, own, bound, expected)
          expect(Object.keys(expected)).toEqual(['y'])
        }),
        parameters(4),
      )
    },
  )
}
