//! A GPU and a context on it: the caller's, or the process's primary one.
//!
//! The primary context is shared with every other user of the CUDA runtime in the process, so that pointers can be
//! exchanged with them; the price is that a kernel that fails in it ends it for all.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::sys::{self, CUcontext, CUdevice, CUdevice_attribute, CUresult, CUuuid, Status};

use crate::driver::{check, initialise};
use crate::error::Error;

/// What a GPU says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name, such as `NVIDIA H200`.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// The newest CUDA that the driver supports, major and minor.
    pub cuda_version: (u32, u32),
    /// As `nvidia-smi` prints it: `GPU-…`.
    pub uuid: String,
    /// Streaming multiprocessors.
    pub processors: u32,
    /// The most shared memory that a block can have, static and dynamic.
    pub max_shared_bytes: u32,
    /// Its fastest clock, in kHz.
    pub kilohertz: u32,
    /// Bytes that its memory can move per second, by clock and width of the bus.
    pub memory_bandwidth: u64,
    /// Bytes of the second-level cache.
    pub cache_bytes: u32,
}

impl Device {
    /// Whether it has clusters and the copy engine for tensor maps, which came together with sm_90.
    pub fn has_clusters(&self) -> bool {
        self.capability >= (9, 0)
    }

    /// Refuses a GPU that is older than this compute capability.
    pub fn at_least(&self, expected: (u32, u32)) -> Result<(), Error> {
        match self.capability >= expected {
            true => Ok(()),
            false => Err(Error::OldGpu { name: self.name.clone(), found: self.capability, expected }),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((major, minor), (cuda, update)) = (self.capability, self.cuda_version);
        write!(formatter, "{}, sm_{major}{minor}, driver for CUDA {cuda}.{update}, {}", self.name, self.uuid)
    }
}

/// A context on a GPU. The primary one is held until the last user drops it; one of the caller's own stays the caller's,
/// who destroys it (by an unsafe call of the driver) after everything that was made in it.
///
/// What is made in it may be used on every thread: each call makes the context current, and leaves the thread with the
/// one that it had.
#[derive(Debug)]
pub struct Context {
    pub(crate) number: CUdevice,
    handle: CUcontext,
    id: u64,
    device: Device,
    /// The primary one: Drop gives back a reference.
    retained: bool,
}

/// As long as it lives, the context is current for this thread.
#[must_use = "the context is current only as long as this lives"]
#[derive(Debug)]
pub(crate) struct Entered {
    pushed: bool,
    /// The stack of contexts is the thread's.
    thread: PhantomData<*mut ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.pushed {
            let mut ours = ptr::null_mut();
            // SAFETY: `ours` outlives the call. Takes off what `enter` put on: guards live in scopes, one in another.
            let _ = unsafe { sys::cuCtxPopCurrent_v2(&mut ours) };
        }
    }
}

/// Every context that [`Context::here`] has met, by its id. They stay: kernels that are loaded in them do, too.
static MET: RwLock<Vec<Arc<Context>>> = RwLock::new(Vec::new());

// SAFETY: the driver API may be called from any thread, and handles belong to the process, not to a thread.
unsafe impl Send for Context {}
// SAFETY: as above; the context holds no state of ours that changes.
unsafe impl Sync for Context {}

impl Context {
    /// Opens the GPU of that number, as CUDA_VISIBLE_DEVICES counts.
    pub fn open(ordinal: usize) -> Result<Arc<Context>, Error> {
        initialise()?;
        let number = number(ordinal)?;
        let device = describe(number)?;
        let mut handle = ptr::null_mut();
        // SAFETY: `number` came from the driver; Drop gives the reference back.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut handle, number) })?;
        let mut context = Context { number, handle, id: 0, device, retained: true };
        // A context that an earlier kernel ended would answer every later call with that kernel's error: say so now.
        context.synchronise()?;
        context.id = id(handle)?;
        Ok(Arc::new(context))
    }

    /// The context that is current for this thread, as the caller or another library made it.
    pub fn current() -> Result<Arc<Context>, Error> {
        initialise()?;
        let handle = current()?;
        if handle.is_null() {
            return Err(Error::NoContext);
        }
        let mut number = 0;
        // SAFETY: a context is current and `number` outlives the call.
        check("cuCtxGetDevice", unsafe { sys::cuCtxGetDevice(&mut number) })?;
        let (id, device) = (id(handle)?, describe(number)?);
        Ok(Arc::new(Context { number, handle, id, device, retained: retain_primary(number, handle)? }))
    }

    /// The context that is current for this thread; if none is, the primary one of GPU 0, which becomes the thread's, as it does
    /// for users of the runtime: entering it for every call would cost more than all else that a call does. Cheap after
    /// the first time.
    pub fn here() -> Result<Arc<Context>, Error> {
        static OPENED: OnceLock<()> = OnceLock::new();
        if OPENED.get().is_none() {
            initialise()?;
            OPENED.get_or_init(|| ());
        }
        let wanted = current_id()?;
        let met = MET.read().unwrap_or_else(PoisonError::into_inner);
        let known = |context: &&Arc<Context>| match wanted {
            Some(id) => context.id == id,
            None => context.retained && context.number == 0,
        };
        let found = met.iter().find(known).cloned();
        drop(met);
        let context = match (found, wanted) {
            (Some(context), Some(_)) => return Ok(context),
            (Some(context), None) => context,
            (None, Some(_)) => Context::current()?.met(),
            (None, None) => Context::open(0)?.met(),
        };
        if wanted.is_none() {
            // SAFETY: the handle is retained as long as the context lives, which is for ever: it was met.
            check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context.handle) })?;
        }
        Ok(context)
    }

    fn met(self: Arc<Context>) -> Arc<Context> {
        MET.write().unwrap_or_else(PoisonError::into_inner).push(self.clone());
        self
    }

    /// The number of the GPU, as CUDA_VISIBLE_DEVICES counts.
    pub fn ordinal(&self) -> u32 {
        self.number.max(0) as u32
    }

    /// Differs from that of every other context in the process, earlier ones too.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The `CUcontext` as a number, for other libraries; good as long as this lives.
    pub fn raw(&self) -> usize {
        self.handle.expose_provenance()
    }

    /// Waits for everything in the context.
    pub fn synchronise(&self) -> Result<(), Error> {
        let _entered = self.enter()?;
        // SAFETY: a context is current.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    /// Refuses what was made in a context of another id; none is memory of the caller's, whose context is not known.
    pub fn check_same(&self, what: &'static str, id: impl Into<Option<u64>>) -> Result<(), Error> {
        match id.into() {
            Some(found) if found != self.id => Err(Error::WrongContext { what, found, expected: self.id }),
            _ => Ok(()),
        }
    }

    /// Does the work with the context current for this thread. Spares many small calls from making it so one by one,
    /// and serves libraries that want a current context.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> Result<T, Error> {
        let _entered = self.enter()?;
        Ok(work())
    }

    /// What the GPU says about itself.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Makes it current for this thread, as every other call demands; costs next to nothing where it is already.
    pub(crate) fn enter(&self) -> Result<Entered, Error> {
        let pushed = current()? != self.handle;
        if pushed {
            // SAFETY: the handle is retained as long as `self` lives, or its owner destroys it after us.
            check("cuCtxPushCurrent_v2", unsafe { sys::cuCtxPushCurrent_v2(self.handle) })?;
        }
        Ok(Entered { pushed, thread: PhantomData })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.retained {
            return;
        }
        // An error here can only repeat that the context is lost, and nobody is left to hear it.
        // SAFETY: gives back the one reference that was taken.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.number) };
    }
}

/// The thread's context, null if it has none; it may have been destroyed by another thread.
fn current() -> Result<CUcontext, Error> {
    let mut handle = ptr::null_mut();
    // SAFETY: the driver is initialised and `handle` outlives the call.
    match unsafe { sys::cuCtxGetCurrent(&mut handle) } {
        status if is_gone(status) => Ok(ptr::null_mut()),
        status => check("cuCtxGetCurrent", status).map(|()| handle),
    }
}

/// The id of the thread's context; none if it has none, or one that another thread has destroyed.
fn current_id() -> Result<Option<u64>, Error> {
    let (handle, mut id) = (current()?, 0);
    if handle.is_null() {
        return Ok(None);
    }
    // SAFETY: the driver gave the handle, and `id` outlives the call.
    match unsafe { sys::cuCtxGetId(handle, &mut id) } {
        status if is_gone(status) => Ok(None),
        status => check("cuCtxGetId", status).map(|()| Some(id)),
    }
}

fn is_gone(status: Status) -> bool {
    [CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED, CUresult::CUDA_ERROR_INVALID_CONTEXT]
        .into_iter()
        .any(|gone| gone as Status == status)
}

fn id(handle: CUcontext) -> Result<u64, Error> {
    let mut id = 0;
    // SAFETY: the handle is a context's and `id` outlives the call.
    check("cuCtxGetId", unsafe { sys::cuCtxGetId(handle, &mut id) })?;
    Ok(id)
}

/// Takes a reference to the GPU's primary context if the handle is it, and says whether.
fn retain_primary(number: CUdevice, handle: CUcontext) -> Result<bool, Error> {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: `number` came from the driver; both places outlive the call.
    let status = unsafe { sys::cuDevicePrimaryCtxGetState(number, &mut flags, &mut active) };
    check("cuDevicePrimaryCtxGetState", status)?;
    if active == 0 {
        return Ok(false); // To retain it would make one.
    }
    let mut primary = ptr::null_mut();
    // SAFETY: `number` came from the driver; the reference is given back here or by Drop.
    check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut primary, number) })?;
    if primary != handle {
        // SAFETY: gives back the reference of the call before.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(number) };
    }
    Ok(primary == handle)
}

fn number(ordinal: usize) -> Result<CUdevice, Error> {
    let mut count = 0;
    // SAFETY: the driver is initialised and `count` outlives the call.
    check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) })?;
    if count <= 0 {
        return Err(Error::NoGpu);
    }
    let wanted = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
    if wanted >= count {
        return Err(Error::NoSuchGpu { ordinal, count: count as usize });
    }
    let mut number = 0;
    // SAFETY: the ordinal is below the count.
    check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut number, wanted) })?;
    Ok(number)
}

fn describe(number: CUdevice) -> Result<Device, Error> {
    use CUdevice_attribute::*;
    let attribute = |which| attribute(number, which);
    Ok(Device {
        name: name(number)?,
        capability: (
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        cuda_version: cuda_version()?,
        uuid: uuid(number)?,
        processors: attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        max_shared_bytes: attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        kilohertz: attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        // Both edges of the clock move data.
        memory_bandwidth: 2
            * 1000
            * u64::from(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?)
            * u64::from(attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?)
            / 8,
        cache_bytes: attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
    })
}

fn attribute(number: CUdevice, which: CUdevice_attribute) -> Result<u32, Error> {
    let mut value = 0;
    // SAFETY: `number` came from the driver and `value` outlives the call.
    check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, which, number) })?;
    Ok(value.max(0) as u32)
}

fn name(number: CUdevice) -> Result<String, Error> {
    let mut text = [0 as c_char; 256];
    // SAFETY: the driver writes at most the given number of bytes, the last one zero.
    check("cuDeviceGetName", unsafe { sys::cuDeviceGetName(text.as_mut_ptr(), text.len() as c_int, number) })?;
    let bytes = text.map(|byte| byte as u8);
    let name = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    Ok(name.to_string_lossy().into_owned())
}

fn uuid(number: CUdevice) -> Result<String, Error> {
    let mut uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: `number` came from the driver and `uuid` has the 16 bytes that it writes.
    check("cuDeviceGetUuid_v2", unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, number) })?;
    Ok(print_uuid(uuid.bytes.map(|byte| byte as u8)))
}

fn print_uuid(bytes: [u8; 16]) -> String {
    let digits = bytes.map(|byte| format!("{byte:02x}")).concat();
    format!("GPU-{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}

fn cuda_version() -> Result<(u32, u32), Error> {
    let mut version: c_int = 0;
    // SAFETY: `version` outlives the call.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) })?;
    let version = version.max(0) as u32;
    Ok((version / 1000, version % 1000 / 10)) // CUDA driver API, cuDriverGetVersion: 1000 * major + 10 * minor.
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_look_as_nvidia_smi_prints_them() {
        let bytes = std::array::from_fn(|index| index as u8);
        assert_eq!(print_uuid(bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn old_gpus_are_refused_with_what_to_do() {
        let device = Device {
            name: "Tesla T4".into(),
            capability: (7, 5),
            cuda_version: (12, 8),
            uuid: String::new(),
            processors: 40,
            max_shared_bytes: 64 << 10,
            kilohertz: 1_980_000,
            memory_bandwidth: 4_800_000_000_000,
            cache_bytes: 60 << 20,
        };
        assert_eq!(
            device.at_least((8, 0)).unwrap_err().to_string(),
            "Tesla T4 is sm_75: expected sm_80 or newer; choose another GPU with CUDA_VISIBLE_DEVICES, or use the emulator"
        );
        device.at_least((7, 5)).unwrap();
    }

    #[test]
    fn what_is_of_another_context_is_named_with_both() {
        let device = Device {
            name: "NVIDIA H200".into(),
            capability: (9, 0),
            cuda_version: (12, 8),
            uuid: String::new(),
            processors: 132,
            max_shared_bytes: 227 << 10,
            kilohertz: 1_980_000,
            memory_bandwidth: 4_800_000_000_000,
            cache_bytes: 60 << 20,
        };
        let context = Context { number: 0, handle: ptr::null_mut(), id: 7, device, retained: false };
        context.check_same("stream", 7).unwrap();
        context.check_same("memory", None).unwrap();
        assert_eq!(
            context.check_same("stream", 9).unwrap_err().to_string(),
            "the stream is of context 9: expected context 7; streams, memory and kernels are used in the context that \
             they were made in"
        );
    }

    #[test]
    fn no_context_of_the_callers_is_no_reason_to_panic() {
        let here = Context::here().map(|context| context.id());
        match Context::current() {
            Ok(context) => assert_eq!(here.unwrap(), context.id()),
            Err(error) => assert!(matches!(error, Error::NoDriver | Error::NoGpu | Error::NoContext), "{error}"),
        }
    }

    #[test]
    fn machine_without_gpu_gets_a_sentence_and_one_with_gets_a_context() {
        match Context::open(0) {
            Ok(context) => assert!(context.device().capability.0 >= 5, "{}", context.device()),
            Err(error) => assert!(matches!(error, Error::NoDriver | Error::NoGpu), "{error}"),
        }
    }
}
