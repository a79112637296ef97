"""Headless Chromium for tests, benchmarks and the pictures of the docs."""

import shutil
from pathlib import Path
from typing import Any

FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync --window-size=1900,1000"


def start_chromium(profile: Path, *flags: str) -> Any:
    """Start a browser with an empty profile folder; None if Chromium or its driver is missing."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        return None
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS.split(), *flags, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


def window(browser: Any, width: int, scheme: str = "light", height: int = 900) -> None:
    """Give the page a size in pixels, and light or dark mode."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
