/** Checks of inputs that are bound to device-resident tensors. */
import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../../ir/coordinates/stage1.ts'
import type { DenseOnDevice } from '../../../storage/dense-on-device.ts'
import type { CallerTensor } from '../sources/caller-tensors.ts'
import { isRowMajor } from '../sources/dense-order.ts'

/** Throws SptError `run/resident` if `t` is not a dense, row-major input, and `convert/dtype` if the types differ. */
export function checkOnDevice(
  kernel: Kernel1,
  name: string,
  { dtype, origin }: DenseOnDevice,
  t: CallerTensor | undefined,
): void {
  if (t?.first.role !== 'in')
    fail({
      code: 'run/resident',
      message: `${name} of kernel ${kernel.name} is ${t ? 'written by it' : 'structure'}, and is bound to ${origin}, which is resident`,
      expected: 'a buffer that the kernel only reads: the memory is that of the kernel that writes it',
      hint: `bind ${name} from the host (await resident.download())`,
    })
  else if (!isRowMajor(kernel, t))
    fail({
      code: 'run/resident',
      message: `${name} of kernel ${kernel.name} is sparse, in a format, or in another order of its dimensions, and is bound to ${origin}, which is resident row by row`,
      expected: `a schedule that stores ${name} as declared, over dense axes`,
      hint: `bind ${name} from the host (await resident.download())`,
    })
  else if (t.first.dtype !== dtype)
    fail({
      code: 'convert/dtype',
      message: `${name} of kernel ${kernel.name} is ${t.first.dtype}, and is bound to ${origin}, which is resident as ${dtype}`,
      expected: t.first.dtype,
      hint: 'declare both with the same type',
    })
}
