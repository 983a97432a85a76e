/** A user's names are the user's affair: keywords, built-ins and the texts' own names of each target included. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { devices, load } from '../../src/node.ts'
import type { Device } from '../../src/runtime/device.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'

/** Each is a keyword, a type, a function or a name of the printed text somewhere. */
const NAMES =
  `function array float var fn Math block_x block_y thread_x thread waiting arguments eval undefined NaN
Infinity Float32Array Array Object globalThis window self this super new delete class await async yield static
int char unsigned double long short auto register template typename namespace using operator asm extern
blockIdx threadIdx blockDim fmaxf expf atomicAdd min_of to_int shared_memory printf NULL INT_MAX NAN INFINITY
linear group groups local params Params vec3 vec3u u32 i32 f32 f16 bool ptr atomic bitcast max min abs exp select
clamp round_f16 is_nan inf_ old_word atomicMax atomicLoad workgroupBarrier quantizeToF16 main loop break continue
switch return while for do enum struct const f16_to_f32 f32_view u32_view erf sign_of max_f32 exp_f32 turn tile_0
j_indptr j_count base_x arena_i32 cell byte shift element seen linux unix __x _ _y $`
    .split(/\s+/)
    .filter((n) => /^[A-Za-z_]\w*$/.test(n))

/** What a kernel names: sizes, scalars, axes, buffers, iterators, lets and an iteration. */
const ROLES = ['m', 'n', 'alpha', 'i', 'j', 'c', 'X', 'Y', 'H', 'Z', 'row', 'col', 'v', 'body'] as const
type Role = (typeof ROLES)[number]

const kernelText = (
  r: Readonly<Record<Role, string>>,
): string => `kernel naming(${r.m}: size, ${r.n}: size, ${r.alpha}: f32) {
  axis ${r.i} = dense_fixed(${r.m})
  axis ${r.j} = sparse_variable(${r.i}, ${r.n})
  axis ${r.c} = dense_fixed(${r.n})
  buffer ${r.X}: f32[${r.i}, ${r.j}] in
  buffer ${r.H}: f16[${r.c}] in
  buffer ${r.Y}: f32[${r.i}] out
  buffer ${r.Z}: f16[${r.i}] out
  iterate ${r.body} [${r.row} in ${r.i}, ${r.col} in ${r.j}] as SR {
    let ${r.v} = ${r.alpha} * ${r.X}[${r.row}, ${r.col}] + f32(${r.H}[${r.col}]) + f32(${r.row})
    ${r.Y}[${r.row}] max= exp(min(${r.v}, 0)) + abs(${r.v})
  }
  iterate last [${r.row} in ${r.i}] as S { ${r.Z}[${r.row}] = f16(select(${r.Y}[${r.row}] == -inf, 0, sign(${r.Y}[${r.row}]) + erf(1.0))) }
}`

/** Every name in the place of every role would take too long: each name meets several, by rotation. */
const texts = (() => {
  const step = 5
  const count = Math.ceil(NAMES.length / step)
  return Array.from({ length: count }, (_, k) => {
    const roles = Object.fromEntries(
      ROLES.map((role, at) => [role, NAMES[(k * step + at) % NAMES.length]!]),
    ) as Record<Role, string>
    return { roles, text: kernelText(roles) }
  })
})()

let all: readonly Device[]
beforeAll(async () => {
  all = [await devices.cpu(), await devices.webgpu()]
})
afterAll(async () => {
  for (const d of all) await d.dispose()
})

describe('any name', () => {
  test('runs on js and wgsl, with the result of the reference', async () => {
    for (const { roles, text } of texts) {
      const kernel = (await load(text)).kernel()
      for (const device of all) {
        const shown = `${device.kind}: ${Object.values(roles).join(' ')}`
        const compiled = await kernel.build(device).catch((e: unknown) => {
          throw new Error(`${shown}\n${e instanceof Error ? e.message : e}`)
        })
        const prepared = await compiled.bind({ [roles.m]: 5, [roles.n]: 7, [roles.alpha]: 2 }, { seed: 3 })
        expect([shown, (await prepared.verify()).problems]).toEqual([shown, []])
        prepared.free()
        compiled.release()
      }
    }
  })

  test('works with barriers and shared memory', async () => {
    for (const name of [
      'thread',
      'waiting',
      'linear',
      'local',
      'group',
      'thread_x',
      'tile',
      'shared_memory',
    ]) {
      const kernel = (
        await load(`kernel k(${name}: size) {
  axis i = dense_fixed(${name})
  axis c = dense_fixed(8)
  axis o = dense_fixed(4)
  buffer x: f32[i, c] in
  buffer w: f32[c, o] in
  buffer ${name}_: f32[i, o] out
  iterate b [i, o, c] as SSR { ${name}_[i, o] += x[i, c] * w[c, o] }
}`)
      )
        .kernel()
        .bind({ i: 'block.x', o: 'thread.x' })
        .cacheRead('x', 'i', 'shared')
      for (const device of all) {
        const prepared = await (await kernel.build(device)).bind({ [name]: 3 }, { seed: 3 })
        expect([name, device.kind, (await prepared.verify()).problems]).toEqual([name, device.kind, []])
        prepared.free()
      }
    }
  })

  test('kernels may have any name too', async () => {
    for (const name of ['function', 'fn', 'main', 'array', 'float', 'Math', 'k_0']) {
      const text = `kernel ${name}(n: size) { axis i = dense_fixed(n) buffer ${name}_0: f32[i] out iterate b [i] as S { ${name}_0[i] = f32(i) } }`
      for (const device of all) {
        const { [`${name}_0`]: y } = await (await (await load(text)).kernel().build(device))({ n: 4 })
        expect([...y!.values!]).toEqual([0, 1, 2, 3])
      }
    }
  })

  test.skipIf(noNvcc)('compiles as CUDA', async () => {
    // Each kernel in a namespace of its own: the names of helpers are the texts' own.
    const cuda = await Promise.all(
      texts.map(async ({ text }, k) => {
        const [module] = (await load(text)).kernel().parallel().emit('cuda')
        return `namespace n${k} {\n${module!.text.replaceAll('naming_', `naming${k}_`)}\n}`
      }),
    )
    expect(compileCuda([cuda.join('\n')])).toBe('')
  })
})
if (noNvcc) console.log(`skipped: compiling CUDA: ${noNvcc}`)
