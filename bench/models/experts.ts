/** A training step of a mixture-of-experts layer with top-2 routing: result, and gradients of tokens, weights and router logits. */
import { dense, load } from '../../src/node.ts'
import type { Device } from '../../src/runtime/device.ts'
import { halves, widen } from '../gpu/blocks.ts'
import { fillNormal } from '../gpu/random.ts'
import { packageFile } from '../support.ts'
import type { Step } from './index.ts'

export interface ExpertsSize {
  readonly kind: 'experts'
  readonly name: string
  readonly experts: number
  readonly tokens: number
  readonly k: number
  readonly h: number
  readonly n: number
}

export const EXPERTS: readonly ExpertsSize[] = [
  { kind: 'experts', name: '8 experts, 4096 tokens', experts: 8, tokens: 4096, k: 1024, h: 4096, n: 1024 },
  { kind: 'experts', name: '64 experts, 8192 tokens', experts: 64, tokens: 8192, k: 1024, h: 1024, n: 1024 },
]
const OUTPUTS = ['Y', 'd_X', 'd_U', 'd_D', 'd_G'] as const

export async function experts(device: Device, size: ExpertsSize): Promise<Step> {
  const { experts, tokens, k, h, n } = size
  const shapes = { X: [tokens, k], U: [experts, k, h], D: [experts, h, n], C: [tokens, n] } as const
  const scales = { X: 0, U: 5, D: 5, C: 6 }
  const bits = Object.entries(shapes).map(([name, shape], seed) => {
    const values = halves(
      shape.reduce((a, b) => a * b),
      seed + 1,
    )
    // Divided by a power of 2: the exponent becomes less.
    const less = scales[name as keyof typeof scales] << 10
    return [name, values.map((v) => ((v & 0x7c00) > less ? v - less : v & 0x8000))] as const
  })
  const G = fillNormal(new Float32Array(tokens * experts), 9)
  const kernel = (await load(packageFile('bench/models/experts.spt'))).kernel('experts_step')
  const built = await kernel.schedule('wgmma').build(device)
  const inputs = bits.map(
    ([name, v]) => [name, dense(shapes[name as keyof typeof shapes], v, 'f16')] as const,
  )
  const bound = await built.bind({ ...Object.fromEntries(inputs), G: dense([tokens, experts], G) })
  return {
    schedule: 'wgmma',
    sizes: { experts, tokens, k, h, n },
    arrays: { G, ...Object.fromEntries(bits.map(([name, v]) => [name, widen(v)] as const)) },
    commands: () => bound.executable.commands,
    async results() {
      await bound.run()
      const found = await Promise.all(
        OUTPUTS.map(async (name) => {
          const values = (await bound.get(name)).values!
          return [name, values instanceof Uint16Array ? widen(values) : Float32Array.from(values)] as const
        }),
      )
      return Object.fromEntries(found)
    },
    free: () => {
      bound.free()
      built.release()
    },
  }
}
