"""PowerSensor 2 and 3, wired to the GPU."""

from typing import Optional, Sequence

from .._observers import Meter, check


class PowerSensorObserver(Meter):
    """``ps_energy`` (J per launch) and ``ps_power`` (W). ``device``: the serial line, default /dev/ttyACM0; with
    "powersensor2:" before it an older sensor."""

    def __init__(self, observables: Optional[Sequence[str]] = None, device: Optional[str] = None) -> None:
        known = {"ps_energy": ("energy", 1.0), "ps_power": ("power", 1.0)}
        check(observables or (), list(known))
        self.observables = list(observables or ["ps_energy"])
        self.keys = {name: known[name] for name in self.observables}
        device = device or "/dev/ttyACM0"
        self.sensors = (device if device.startswith("powersensor") else f"powersensor3:{device}",)
