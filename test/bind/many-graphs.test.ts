/** One compiled kernel for many small graphs: sizes, structure and values change from call to call, and nothing of a call remains. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense, devices, load } from '../../src/node.ts'

const WIDTH = 3
const kernel = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
const device = await devices.cpu()

/** Edges in any order, some of them twice, with small integers as values. */
const graphs = fc.array(
  fc.integer({ min: 1, max: 24 }).chain((n) => {
    const edge = fc.tuple(fc.nat(n - 1), fc.nat(n - 1), fc.integer({ min: -9, max: 9 }))
    return fc.record({ n: fc.constant(n), edges: fc.array(edge, { maxLength: 60 }) })
  }),
  { minLength: 2, maxLength: 6 },
)

for (const [name, ...args] of [['cpu'], ['hyb', 2, 3]] as const)
  test(`spmm under ${name}(${args}) multiplies every graph of a sequence`, async () => {
    const fn = await kernel.schedule(name, ...args).build(device)
    await fc.assert(
      fc.asyncProperty(graphs, async (sequence) => {
        const cases = sequence.map(({ n, edges }) => {
          const B = Float32Array.from({ length: n * WIDTH }, (_, k) => (k % 7) - 3)
          const tensor = (scale: number) =>
            coords(
              [n, n],
              [edges.map((e) => e[0]), edges.map((e) => e[1])],
              Float32Array.from(edges, (e) => scale * e[2]),
            )
          const product = (scale: number): number[] => {
            const C = new Array<number>(n * WIDTH).fill(0)
            for (const [i, j, x] of edges)
              for (let f = 0; f < WIDTH; f++) C[i * WIDTH + f]! += scale * x * B[j * WIDTH + f]!
            return C
          }
          return { A: tensor(1), twice: tensor(2), B: dense([n, WIDTH], B), product }
        })
        const bindings = await Promise.all(cases.map(({ A, B }) => fn.bind({ A, B })))
        for (const [k, { A, B, twice, product }] of cases.entries()) {
          expect(Array.from((await fn({ A, B })).C!.values!, (x) => x + 0)).toEqual(product(1))
          const binding = bindings[k]!
          await binding.set('A', twice)
          await binding.run()
          expect(Array.from((await binding.get('C')).values!, (x) => x + 0)).toEqual(product(2))
          binding.free()
        }
      }),
    )
    fn.release()
  })
