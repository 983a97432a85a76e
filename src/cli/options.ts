/** Options that several commands have, in the same words. */
import type { OptionSpec } from './command.ts'

export const KERNEL: OptionSpec = {
  flags: '--kernel <K>',
  about: 'Which kernel (default: the only one, or the one called like its file)',
}

export const schedule = (about: string): OptionSpec => ({ flags: '--schedule <S>', about })

/** Options of commands that run a kernel on a device. */
export const SCHEDULE = schedule(
  'Its name, or gpu(8, 32) with arguments (default: auto, else cpu on cpu and gpu on the others, if there and legal)',
)

export const DEVICE: OptionSpec = { flags: '--device <D>', about: 'cpu, webgpu or cuda (default: cpu)' }

export const SIZE: OptionSpec = { flags: '--size <NAME=N>', about: 'A size or a scalar', repeats: true }

export const BIND: OptionSpec = {
  flags: '--bind <NAME=PATH>',
  about:
    'Data of a buffer, of an axis (structure alone; of a ragged one its offsets), or a list or set of its format',
  repeats: true,
  file: 'read',
}

export const SEED: OptionSpec = {
  flags: '--seed <N>',
  about: 'Of the random data of what is not bound (default: 0)',
}

/** Options of commands that may choose for a device without opening it. */
export const DEVICE_FACTS: readonly OptionSpec[] = [
  {
    flags: '--capability <C>',
    about: 'Where the schedule is chosen by it: the compute capability of the CUDA device (9.0)',
  },
  {
    flags: '--processors <N>',
    about: 'Where the schedule is chosen by it: how many multiprocessors the device has',
  },
  {
    flags: '--feature <F>',
    about: 'Where the schedule is chosen by them: each feature that the device has (subgroups)',
    repeats: true,
  },
]

/** Options of commands without data. */
export const CHOOSING_SIZES: OptionSpec = {
  flags: '--size <NAME=N>',
  about: 'Where the schedule is chosen by them: a size, or a statistic (longest(j)=700)',
  repeats: true,
}

/** Options of commands that load programs: permissions of untrusted programs. */
export const TRUST: readonly OptionSpec[] = [
  {
    flags: '--no-instr',
    about:
      'Refuse texts of instructions and memories, which run on devices as they are written, but those of the package',
  },
  {
    flags: '--import-root <DIR>',
    about: 'Imports come from this folder and from the package, and from nowhere else',
  },
]
