/** What calls with resident tensors refuse, and what they say is to be done. */

import { beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import {
  bindResident,
  convertForKernel,
  planConversion,
  type ResidentTensor,
  storageFormat,
  upload,
} from '../../src/device.ts'
import { type Built, coords, type Diagnostic, dense, devices, load, SptError } from '../../src/node.ts'

const kernel = (name: string, role: string, body: string, more = ''): string => `
kernel ${name}(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] ${role}
  ${more}
  iterate t [i, j] as ${body}
}`
const TEXT = `import "sparsetile/kernels/formats.spt"
${kernel('twice', 'inout', 'SS { A[i, j] = A[i, j] * 2 }')}
${kernel('sum', 'in', 'SR { C[i] += A[i, j] }', 'buffer C: f32[i] out')}
`
const host = await devices.cpu()
const columns = [
  [0, 0, 3],
  [0, 3, 2],
]

/** What a call is refused with. */
async function refusal(call: () => Promise<unknown>): Promise<Diagnostic | undefined> {
  try {
    await call()
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return e.diagnostics[0]
  }
  return undefined
}

describe('resident tensors', () => {
  let [twice, sum, other]: Built[] = []
  let from: ResidentTensor
  beforeAll(async () => {
    const program = await load(TEXT)
    twice = await program.kernel('twice').as('A', 'panels', 2, 2).build(host)
    sum = await program.kernel('sum').as('A', 'panels', 2, 2).build(host)
    other = await program.kernel('sum').as('A', 'panels', 4, 2).build(host)
    from = await upload(host, coords([4, 5], columns, Float32Array.of(1, 2, 3)))
  })

  test('parts of another kernel in the same format are used, and convertForKernel changes the format', async () => {
    const parts = await convertForKernel(twice!, 'A', from)
    const changed = await bindResident(twice!, { A: parts })
    await changed.run()
    const said = await refusal(() => bindResident(other!, { A: parts }))
    expect(said).toMatchObject({
      code: 'convert/other-format',
      expected: 'a tensor in the same format, over axes of the same names and extents',
      hint: "convert the tensor: convertForKernel(kernel, 'A', parts)",
    })
    for (const prepared of [
      await bindResident(sum!, { A: parts }),
      await bindResident(other!, { A: await convertForKernel(other!, 'A', parts) }),
    ]) {
      await prepared.run()
      expect([...(await prepared.get('C')).values!]).toEqual([6, 0, 0, 6])
    }
  })

  test('sizes that the shape determines cannot be passed', async () => {
    const sizes = (m: number) => convertForKernel(sum!, 'A', from, { sizes: new Map([['m', m]]) })
    expect(await refusal(() => sizes(4))).toBeUndefined()
    expect(await refusal(() => sizes(9))).toMatchObject({
      code: 'bind/size-mismatch',
      message: 'm is 9 by the given size, and 4 by dimension 0 of the tensor',
    })
    const to = storageFormat(sum!, 'A')
    const none = new Map()
    const extents = new Map(to.over.map((axis, k) => [axis.name, [4, 6][k]!]))
    const given = { sizes: none, extents, lists: none, sets: none }
    expect(await refusal(() => planConversion(host, to).run(from, given))).toMatchObject({
      code: 'bind/size-mismatch',
      message: 'j is 6 by the given size, and 5 by dimension 1 of the tensor',
    })
  })

  test('unknown sizes and axes', async () => {
    const sizes = (name: string, m: number) =>
      convertForKernel(sum!, 'A', from, { sizes: new Map([[name, m]]) })
    const said = await refusal(() => sizes('mm', 4))
    expect(said).toMatchObject({
      code: 'bind/unknown-size',
      message: 'kernel sum has no size or scalar mm',
      expected: 'one of m, n',
    })
    // As where data are bound.
    const bound = await refusal(() => sum!.bind({ mm: 4 }))
    expect(said).toEqual(bound)
    expect((await refusal(() => sizes('m', 4.5)))?.code).toBe('bind/size-range')
    const to = storageFormat(sum!, 'A')
    const given = { sizes: new Map(), extents: new Map([['q', 4]]), lists: new Map(), sets: new Map() }
    expect(await refusal(() => planConversion(host, to).run(from, given))).toMatchObject({
      code: 'api/unknown-option',
      expected: 'some of i, j',
    })
  })

  test('two dimensions of one size are equally long', async () => {
    const square = TEXT.replaceAll('m: size, n: size', 'n: size').replaceAll(
      'dense_fixed(m)',
      'dense_fixed(n)',
    )
    const compiled = await (await load(square)).kernel('sum').as('A', 'csr').build(host)
    expect(await refusal(() => convertForKernel(compiled, 'A', from))).toMatchObject({
      code: 'bind/size-mismatch',
      message: 'n is 4 by another dimension, and 5 by dimension 1 of the tensor',
    })
  })

  test('unknown names', async () => {
    const parts = await convertForKernel(sum!, 'A', from)
    for (const call of [
      () => bindResident(sum!, { Z: parts }),
      () => convertForKernel(sum!, 'Z', from),
      async () => storageFormat(sum!, 'Z'),
    ])
      expect(await refusal(call)).toMatchObject({
        code: 'bind/unknown-name',
        message: 'kernel sum has no tensor Z',
        expected: 'one of A, C',
      })
    expect((await refusal(() => bindResident(sum!, { C: parts })))?.code).toBe('convert/no-format')
    expect(await refusal(() => bindResident(sum!, { A: from as never }))).toMatchObject({
      code: 'api/argument',
      message: 'resident tensor A cannot be an object',
      expected: "the result of convertForKernel(kernel, 'A', …)",
    })
    // One format after another, of which the kernel stores the last.
    const again = await (await load(TEXT)).kernel('sum').as('A', 'csr').as('A', 'panels', 2, 2).build(host)
    for (const call of [() => bindResident(again, { A: parts }), async () => storageFormat(again, 'A')])
      expect((await refusal(call))?.code).toBe('convert/no-format')
  })

  test('an object of another class is named', async () => {
    const lists = (x: unknown) => refusal(() => convertForKernel(sum!, 'A', from, { lists: x as never }))
    expect(await lists({ q: 1 })).toMatchObject({
      message: 'the lists cannot be an object',
      hint: 'new Map(Object.entries(…)) makes one of an object',
    })
    for (const [x, text] of [
      [new Set(), 'a Set'],
      [Int32Array.of(1), 'an Int32Array'],
      [Uint8Array.of(1), 'a Uint8Array'],
      [Object.create(null), 'an object'],
      [new (class {})(), 'an object'],
    ] as const)
      expect((await lists(x))?.message).toBe(`the lists cannot be ${text}`)
  })

  test('values of another type: the hint converts them', async () => {
    const list = [1, 2, 3]
    const wide = await convertForKernel(sum!, 'A', await upload(host, coords([4, 5], columns, list)))
    expect(await refusal(() => bindResident(sum!, { A: wide }))).toMatchObject({
      code: 'convert/dtype',
      hint: "a list of numbers is f64: upload the result of coords(shape, columns, list, 'f32')",
    })
    const fits = await convertForKernel(sum!, 'A', await upload(host, coords([4, 5], columns, list, 'f32')))
    expect(await refusal(() => bindResident(sum!, { A: fits }))).toBeUndefined()
  })

  test('only choose reads resident tensors: prepare, bind and run would leave them out, or draw them at random', async () => {
    const program = await load(`${TEXT}schedule sum.one choose { otherwise plain }\nschedule sum.plain { }`)
    const inputs = { resident: { A: from }, params: { m: 4, n: 5 }, seed: 1 }
    for (const kernel of [program.kernel('sum'), program.kernel('sum').schedule('one'), null]) {
      const compiled = kernel ? await kernel.build(host) : sum!
      for (const call of [
        () => compiled.bind(...flatInputs(inputs)),
        async () => compiled.bindOnHost(...flatInputs(inputs)),
        () => compiled(...flatInputs(inputs)),
      ])
        expect(await refusal(call)).toMatchObject({
          code: 'api/unknown-option',
          hint: 'bind resident tensors with bindResident(kernel, { A: parts, B })',
        })
      const chosen = await compiled.choose(...flatInputs(inputs))
      expect(chosen.compilation.source.name).toBe('sum')
    }
  })

  test('a size that differs from that of a resident tensor: both tensors are named', async () => {
    const buffers = 'buffer D: f32[i] in\n  buffer C: f32[i] out'
    const text = `${kernel('scaled', 'in', 'SR { C[i] += A[i, j] * D[i] }', buffers)}
schedule scaled.one choose { when (n > 3) plain otherwise plain }
schedule scaled.plain { }`
    const compiled = await (await load(text)).kernel().schedule('one').build(host)
    const inputs = { tensors: { D: dense([6], new Float32Array(6)) }, resident: { A: from } }
    const said = await refusal(() => compiled.choose(...flatInputs(inputs)))
    expect(said?.message).toBe('size m is 6 by dimension 0 of D, and 4 by dimension 0 of A')
  })

  test('without a dispatch, properties of the device are not used', async () => {
    const compiled = await (await load(TEXT)).kernel('sum').build(host)
    const said = await refusal(() =>
      compiled.bind(...flatInputs({ params: { m: 4, n: 5 }, seed: 1, processors: 132 } as never)),
    )
    expect(said?.code).toBe('api/unknown-option')
  })
})
