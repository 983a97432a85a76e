/** The public types: checked by `npm run types`, since a wrong one does not compile. */
import { expectTypeOf, test } from 'vitest'
import type * as Browser from '../../src/index.ts'
import type * as Node from '../../src/node.ts'
import {
  type Bindable,
  type Binding,
  type BindOptions,
  type BuildOptions,
  type Built,
  type ConvertedTensor,
  type CoordTensor,
  coords,
  type DenseTensor,
  type Device,
  dense,
  devices,
  type Inputs,
  type Kernel,
  load,
  type ModuleText,
  type Part,
  readTensor,
  type SptFormat,
  type SptProgram,
  type StoredTensor,
  stored,
  type Tensor,
  type TensorFormat,
  type Verification,
  type writeTensor,
} from '../../src/node.ts'

test('from text to results', () => {
  expectTypeOf(load).returns.resolves.toEqualTypeOf<SptProgram>()
  expectTypeOf<string | URL>().toExtend<Parameters<typeof load>[0]>()
  expectTypeOf<SptProgram['kernel']>().returns.toEqualTypeOf<Kernel>()
  expectTypeOf<Kernel['build']>().parameters.toEqualTypeOf<
    [device: Device, options?: BuildOptions | undefined]
  >()
  expectTypeOf<Kernel['build']>().returns.resolves.toEqualTypeOf<Built>()
  expectTypeOf<Built['bind']>().returns.resolves.toEqualTypeOf<Binding>()
  expectTypeOf<ReturnType<Built>>().resolves.toEqualTypeOf<Record<string, Tensor>>()
  expectTypeOf<Parameters<Built>>().toEqualTypeOf<[inputs: Inputs, options?: BindOptions]>()
  expectTypeOf<Binding['verify']>().returns.resolves.toEqualTypeOf<Verification>()
  expectTypeOf<Binding['get']>().returns.resolves.toEqualTypeOf<Tensor>()
  expectTypeOf<Kernel['emit']>().returns.toEqualTypeOf<readonly ModuleText[]>()
})

test('the sample of a verification', () => {
  type Options = NonNullable<Parameters<Binding['verify']>[0]>
  expectTypeOf<{ count: number; seed: number }>().toExtend<NonNullable<Options['sample']>>()
  expectTypeOf<{ fraction: number; seed: number }>().toExtend<NonNullable<Options['sample']>>()
  expectTypeOf<{ count: number }>().toExtend<NonNullable<Options['sample']>>()
  expectTypeOf<{ count: number; seed: string }>().not.toExtend<NonNullable<Options['sample']>>()
})

test('formats', () => {
  expectTypeOf<Kernel['as']>().parameter(0).toBeString()
  expectTypeOf<Kernel['each']>().parameter(1).toEqualTypeOf<(kernel: Kernel, part: Part) => Kernel>()
  expectTypeOf<SptProgram['format']>().returns.toEqualTypeOf<SptFormat>()
  expectTypeOf<SptFormat['convert']>().returns.toEqualTypeOf<ConvertedTensor>()
  expectTypeOf<ConvertedTensor['toCoords']>().returns.toEqualTypeOf<CoordTensor>()
  expectTypeOf<Binding['formats']>().toEqualTypeOf<readonly TensorFormat[]>()
  expectTypeOf<Binding['set']>().parameter(1).toEqualTypeOf<Inputs[string]>()
})

test('every step gives a kernel, so that calls chain', () => {
  type Step = Extract<
    keyof Kernel,
    | ('as' | 'reorder' | 'fuse' | 'attach' | 'split' | 'tile' | 'bind' | 'unroll' | 'vectorize')
    | ('cache_read' | 'cache_write' | 'compute_at' | 'compute_inline' | 'fission' | 'rfactor' | 'atomic')
    | ('parallel' | 'sequential' | 'undo' | 'schedule' | 'apply' | 'replay')
  >
  expectTypeOf<ReturnType<Kernel[Step]>>().toEqualTypeOf<Kernel>()
})

test('arguments are as narrow as the language', () => {
  const wrong = (k: Kernel): void => {
    // @ts-expect-error no such thread axis
    k.bind({ i: 'blok.x' })
    // @ts-expect-error two names
    k.split('i', 8, ['io'])
    // @ts-expect-error a factor
    k.split('i')
    // @ts-expect-error no such stage
    k.show(4)
    // @ts-expect-error no such target
    k.emit('metal')
    // @ts-expect-error loops are strings or handles
    k.fuse([1, 2])
  }
  expectTypeOf(wrong).toBeFunction()
  expectTypeOf<Kernel['loop']>().returns.toExtend<Parameters<Kernel['unroll']>[0]>()
})

test('tensors', () => {
  expectTypeOf(dense).returns.toEqualTypeOf<DenseTensor>()
  expectTypeOf(coords).returns.toEqualTypeOf<CoordTensor>()
  expectTypeOf(stored).returns.toEqualTypeOf<StoredTensor>()
  expectTypeOf<Tensor['kind']>().toEqualTypeOf<'dense' | 'coords' | 'stored'>()
  expectTypeOf<Float32Array>().toExtend<Bindable>()
  expectTypeOf<number[]>().toExtend<Bindable>()
  expectTypeOf<string>().not.toExtend<Bindable>()
  expectTypeOf<BigInt64Array>().not.toExtend<Bindable>()
  expectTypeOf(readTensor).returns.resolves.toEqualTypeOf<Tensor>()
  expectTypeOf<[path: string | URL, tensor: Tensor]>().toExtend<Parameters<typeof writeTensor>>()
})

test('device types in Node and in browsers', () => {
  expectTypeOf(devices.cpu).returns.resolves.toEqualTypeOf<Device>()
  expectTypeOf<keyof typeof devices>().toEqualTypeOf<'cpu' | 'webgpu' | 'cuda'>()
  expectTypeOf<keyof (typeof Browser)['devices']>().toEqualTypeOf<'cpu' | 'webgpu'>()
  // What works in a browser works in Node.
  expectTypeOf<Exclude<keyof typeof Browser, keyof typeof Node>>().toBeNever()
  expectTypeOf<Device['kind']>().toEqualTypeOf<'cpu' | 'webgpu' | 'cuda'>()
})
