//! What a GPU says about its own state: power, temperature, and what holds its clock back. Through NVML, which comes with the
//! driver.

use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;

#[cfg(not(windows))]
const LIBRARY: &str = "libnvidia-ml.so.1";
#[cfg(windows)]
const LIBRARY: &str = "nvml.dll";

/// `NVML_TEMPERATURE_GPU`.
const OF_THE_GPU: c_uint = 0;

/// Bits of `nvmlClocksEventReasons` that hold the clock back, in the words of nvidia-smi.
const REASONS: [(u64, &str); 6] = [
    (0x4, "software power cap"),
    (0x8, "hardware slowdown"),
    (0x20, "software thermal slowdown"),
    (0x40, "hardware thermal slowdown"),
    (0x80, "hardware power brake"),
    (0x10, "synchronised boost"),
];

/// A GPU that can be asked.
pub struct Monitor {
    nvml: Library,
    device: *mut c_void,
}

/// What it answered; nothing where it does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    pub watts: Option<f64>,
    pub celsius: Option<u32>,
    /// What holds its clock back, if anything does.
    pub held_back: Vec<&'static str>,
}

type OneNumber = unsafe extern "C" fn(*mut c_void, *mut c_uint) -> c_int;

impl Monitor {
    /// Nothing where NVML is missing or does not know the GPU, which nvidia-smi names by its `uuid`.
    pub fn open(uuid: &str) -> Option<Monitor> {
        // SAFETY: NVML's initialisers are written to be loaded so; nvidia-smi does it.
        let nvml = unsafe { Library::new(LIBRARY) }.ok()?;
        let name = CString::new(uuid).ok()?;
        let mut device = std::ptr::null_mut();
        // SAFETY: both have these types in nvml.h; the name ends in a zero, and `device` outlives the call.
        let found = unsafe {
            let init = nvml.get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2").ok()?;
            let by_uuid = nvml
                .get::<unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int>(b"nvmlDeviceGetHandleByUUID");
            init() == 0 && by_uuid.ok()?(name.as_ptr(), &mut device) == 0
        };
        found.then_some(Monitor { nvml, device })
    }

    pub fn condition(&self) -> Condition {
        Condition {
            watts: self.number(b"nvmlDeviceGetPowerUsage").map(|milliwatts| f64::from(milliwatts) / 1e3),
            celsius: self.temperature(),
            held_back: self.held_back(),
        }
    }

    /// The most watts that it may take, as set now.
    pub fn power_limit(&self) -> Option<f64> {
        self.number(b"nvmlDeviceGetPowerManagementLimit").map(|milliwatts| f64::from(milliwatts) / 1e3)
    }

    fn number(&self, function: &[u8]) -> Option<c_uint> {
        let mut value = 0;
        // SAFETY: both functions that are asked for have this type in nvml.h, and `value` outlives the call.
        let status = unsafe { self.nvml.get::<OneNumber>(function).ok()?(self.device, &mut value) };
        (status == 0).then_some(value)
    }

    fn temperature(&self) -> Option<u32> {
        type Function = unsafe extern "C" fn(*mut c_void, c_uint, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: the function has this type in nvml.h, and `value` outlives the call.
        let status = unsafe {
            self.nvml.get::<Function>(b"nvmlDeviceGetTemperature").ok()?(self.device, OF_THE_GPU, &mut value)
        };
        (status == 0).then_some(value)
    }

    fn held_back(&self) -> Vec<&'static str> {
        type Function = unsafe extern "C" fn(*mut c_void, *mut c_ulonglong) -> c_int;
        let mut bits = 0;
        // SAFETY: the function has this type in nvml.h, and `bits` outlives the call.
        let status = unsafe {
            let asked = self.nvml.get::<Function>(b"nvmlDeviceGetCurrentClocksThrottleReasons");
            asked.map_or(-1, |asked| asked(self.device, &mut bits))
        };
        if status == 0 { reasons(bits) } else { vec![] }
    }
}

fn reasons(bits: u64) -> Vec<&'static str> {
    REASONS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, words)| *words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_holds_the_clock_back_is_said() {
        assert_eq!(reasons(0x1), Vec::<&str>::new(), "idle is no reason");
        assert_eq!(reasons(0x4 | 0x40), ["software power cap", "hardware thermal slowdown"]);
    }

    #[test]
    fn an_unknown_gpu_is_not_monitored() {
        assert!(Monitor::open("GPU-00000000-0000-0000-0000-000000000000").is_none());
    }
}
